// Something is changed after a yes: what would follow, the command that does the same, and what the API says against it.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { refresh } from "../api/queries";
import { Command, Dialog, Trouble } from "./parts";

interface Asked {
  title: string;
  verb: string;
  command?: string;
  danger?: boolean;
  isGood?: boolean;
  act: () => Promise<unknown>;
  close: () => void;
  children?: ReactNode;
}

export function Sure({ title, verb, command, danger, isGood = true, act, close, children }: Asked) {
  const client = useQueryClient();
  const change = useMutation({
    mutationFn: act,
    onSuccess: async () => {
      close();
      await refresh(client);
    },
  });
  return (
    <Dialog title={title} open close={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          change.mutate();
        }}
      >
        {children}
        {command && <Command text={command} />}
        {change.error && <Trouble error={change.error} />}
        <footer>
          <button type="button" onClick={close}>
            Leave it
          </button>
          <button type="submit" className={danger ? "danger" : "primary"} disabled={!isGood || change.isPending}>
            {verb}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
