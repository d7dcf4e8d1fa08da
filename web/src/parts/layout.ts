import { graphlib, layout } from "@dagrejs/dagre";

const CHAR = 7.2; // pixels of a letter, about

export const widthOf = (name: string) => Math.max(96, Math.min(320, name.length * CHAR + 48));

/** Where the upper left corner of each box is, from left to right along the edges. */
export function placed(boxes: { id: string; width: number; height: number }[], edges: [string, string][]): Map<string, { x: number; y: number }> {
  const graph = new graphlib.Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 16, ranksep: 56 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id, width, height } of boxes) graph.setNode(id, { width, height });
  for (const [from, to] of edges) if (graph.hasNode(from) && graph.hasNode(to)) graph.setEdge(from, to);
  layout(graph);
  return new Map(boxes.map(({ id, width, height }) => [id, { x: graph.node(id).x - width / 2, y: graph.node(id).y - height / 2 }]));
}
