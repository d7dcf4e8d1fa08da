// Pages of lists, as the API gives them: one begins behind the last row of the one before (`cursor`), and has an address.
import { useNavigate, useSearch } from "@tanstack/react-router";

/** Where the page's list begins, and the buttons that lead on. `first` is what its first page is called, `further` the way on. */
export function usePages(first = "First", further = "Next") {
  const { cursor } = useSearch({ strict: false });
  const navigate = useNavigate();
  const go = (to: string | undefined) => void navigate({ to: ".", search: (before: Record<string, unknown>) => ({ ...before, cursor: to }) });
  const pages = (next: string | null | undefined) =>
    (cursor || next) && (
      <nav className="more" aria-label="Paging">
        {cursor && (
          <button type="button" onClick={() => go(undefined)}>
            {first}
          </button>
        )}{" "}
        {next && (
          <button type="button" onClick={() => go(next)}>
            {further}
          </button>
        )}
      </nav>
    );
  return { from: cursor ? { cursor } : {}, pages };
}
