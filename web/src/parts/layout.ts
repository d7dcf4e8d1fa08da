import { graphlib, layout } from "@dagrejs/dagre";

const CHAR = 7.8; // pixels of a letter, about

export const widthOf = (name: string) => Math.max(96, Math.min(320, name.length * CHAR + 52));

export interface Place {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Where the upper left corner of each box is, from left to right along the edges, and how large the frames around them are. */
export function placed(
  boxes: { id: string; width: number; height: number; frame?: string | null }[],
  edges: [string, string][],
  frames: { id: string; frame: string | null }[] = [],
): Map<string, Place> {
  const graph = new graphlib.Graph({ compound: frames.length > 0 });
  graph.setGraph({ rankdir: "LR", nodesep: frames.length ? 28 : 16, ranksep: 56 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id } of frames) graph.setNode(id, {});
  for (const { id, width, height } of boxes) graph.setNode(id, { width, height });
  for (const { id, frame } of [...frames, ...boxes]) if (frame) graph.setParent(id, frame);
  for (const [from, to] of edges) if (graph.hasNode(from) && graph.hasNode(to)) graph.setEdge(from, to);
  layout(graph);
  return new Map(
    [...frames, ...boxes].map(({ id }) => {
      const { x, y, width, height } = graph.node(id) as Place;
      return [id, { x: x - width / 2, y: y - height / 2, width, height }];
    }),
  );
}
