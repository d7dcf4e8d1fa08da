import "@xyflow/react/dist/base.css";
import { Link } from "@tanstack/react-router";
import { Background, Controls, Handle, Position, ReactFlow, type Edge, type Node, type NodeProps } from "@xyflow/react";
import { useMemo } from "react";
import type { Schemas } from "../api/client";
import { Icon } from "../parts/icons";
import { Empty } from "../parts/parts";
import { placed, widthOf } from "../parts/layout";

const MOST = 500; // nodes: above it a picture shows nothing
const HEIGHT = 36;
type LineageNode = Node<{ name: string; isAsset: boolean }, "lineage">;

/** DAGs and assets: from who makes one to who waits for it. */
export function Lineage({ assets }: { assets: Schemas["AssetSummary"][] }) {
  const shape = JSON.stringify(assets.map((one) => [one.name, one.producers, one.consumers]));
  const [nodes, edges] = useMemo(() => drawn(assets), [shape]);
  if (nodes.length > MOST) return <Empty title={`A picture of ${nodes.length} assets and DAGs shows nothing. The list has all of them.`} />;
  return (
    <div className="graph lineage">
      <ReactFlow
        nodes={nodes}
        edges={edges}
        nodeTypes={TYPES}
        fitView
        fitViewOptions={{ maxZoom: 1, padding: 0.1 }}
        minZoom={0.05}
        nodesDraggable={false}
        nodesConnectable={false}
        nodesFocusable={false}
        elementsSelectable={false}
        proOptions={{ hideAttribution: true }}
        aria-label="Lineage of assets"
      >
        <Background gap={24} size={1} />
        <Controls showInteractive={false} />
      </ReactFlow>
    </div>
  );
}

function drawn(assets: Schemas["AssetSummary"][]): [LineageNode[], Edge[]] {
  const dags = [...new Set(assets.flatMap((one) => [...one.producers, ...one.consumers]))];
  const named = [...dags.map((name) => ({ name, isAsset: false })), ...assets.map(({ name }) => ({ name, isAsset: true }))];
  const idOf = (name: string, isAsset: boolean) => `${isAsset ? "asset" : "dag"} ${name}`;
  const edges = assets.flatMap((one) => [
    ...one.producers.map((dag): [string, string] => [idOf(dag, false), idOf(one.name, true)]),
    ...one.consumers.map((dag): [string, string] => [idOf(one.name, true), idOf(dag, false)]),
  ]);
  const places = placed(named.map(({ name, isAsset }) => ({ id: idOf(name, isAsset), width: widthOf(name), height: HEIGHT })), edges);
  return [
    named.map(({ name, isAsset }) => ({
      id: idOf(name, isAsset),
      type: "lineage",
      position: places.get(idOf(name, isAsset)) ?? { x: 0, y: 0 },
      width: widthOf(name),
      height: HEIGHT,
      data: { name, isAsset },
    })),
    edges.map(([source, target]) => ({ id: `${source} ${target}`, source, target, focusable: false })),
  ];
}

function LineageBox({ data: { name, isAsset } }: NodeProps<LineageNode>) {
  return (
    <>
      <Handle type="target" position={Position.Left} isConnectable={false} />
      {isAsset ? (
        <Link to="/assets" search={(before) => ({ ...before, asset: name })} className="node asset-node">
          <Icon name="asset" /> {name}
        </Link>
      ) : (
        <Link to="/dags/$dagId" params={{ dagId: name }} className="node">
          <Icon name="dags" /> {name}
        </Link>
      )}
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </>
  );
}

const TYPES = { lineage: LineageBox };
