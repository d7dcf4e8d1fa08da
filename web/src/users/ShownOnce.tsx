// A secret that was made a moment ago: it is told once, so it stays until one has it.
import type { ReactNode } from "react";
import { Copied, Dialog } from "../parts/parts";

export function ShownOnce({ title, text, label, close, children }: { title: string; text: string; label: string; close: () => void; children: ReactNode }) {
  return (
    <Dialog title={title} open close={close}>
      {children}
      <p className="command">
        <code>{text}</code>
        <Copied text={text} label={label} />
      </p>
      <footer>
        <button type="button" className="primary" onClick={close}>
          I have it
        </button>
      </footer>
    </Dialog>
  );
}
