import { useEffect } from "react";

/** The name of the page in the browser's tab. */
export function useTitle(title: string) {
  useEffect(() => {
    document.title = title ? `${title} · Evenflow` : "Evenflow";
  }, [title]);
}
