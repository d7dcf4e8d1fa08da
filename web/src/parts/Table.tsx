import type { ReactNode } from "react";

export interface Column<T> {
  name: string;
  cell: (row: T) => ReactNode;
  as?: "right" | "name" | "wide" | "widest" | "meter-cell";
  hidden?: boolean; // the name is for those who hear the page alone
}

/** Rows of one kind. It scrolls by itself where it is wider than the page; on a phone each row is a block, whose cells say their column. */
export function Table<T>({ label, rows, keyOf, columns }: { label: string; rows: T[]; keyOf: (row: T) => string; columns: Column<T>[] }) {
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label={label}>
      <table className="list">
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} className={column.as}>
                {column.hidden ? <span className="visually-hidden">{column.name}</span> : column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column, at) => (
                <td key={column.name} data-label={at === 0 || column.hidden ? undefined : column.name} className={column.as === "right" ? "right number" : column.as}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
