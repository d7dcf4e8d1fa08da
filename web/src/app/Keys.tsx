import { useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { Dialog } from "../parts/parts";
import { PLACES, usePlaces } from "./places";

const SECOND_KEY_MS = 1200; // for the second of two keys, as in g d

const isTyped = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));

/** Keys that work on every page, and the page that tells them. */
export function Keys() {
  const [shown, setShown] = useState(false);
  const navigate = useNavigate();
  const places = usePlaces();
  useEffect(() => {
    let last = { key: "", at: 0 };
    const onKey = (event: KeyboardEvent) => {
      if (isTyped(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
      const goes = last.key === "g" && event.timeStamp - last.at < SECOND_KEY_MS;
      last = { key: event.key, at: event.timeStamp };
      const place = goes ? PLACES.find((one) => one.key === event.key) : undefined;
      if (place) void navigate({ to: place.to });
      else if (event.key === "?") setShown(true);
      else if (event.key === "/") {
        const search = document.querySelector<HTMLInputElement>("main input[type=search]");
        if (search) {
          event.preventDefault();
          search.focus();
        }
      } else if (event.key === "j" || event.key === "k") step(event.key === "j" ? 1 : -1);
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [navigate]);
  return (
    <Dialog title="Keys" open={shown} close={() => setShown(false)}>
      <dl className="keys">
        <dt><kbd>Ctrl K</kbd></dt><dd>find a page, a DAG or an action</dd>
        {places.map((place) => (
          <div key={place.to} className="pair">
            <dt><kbd>g</kbd> <kbd>{place.key}</kbd></dt><dd>go to {place.name}</dd>
          </div>
        ))}
        <dt><kbd>j</kbd> <kbd>k</kbd></dt><dd>next and previous row</dd>
        <dt><kbd>/</kbd></dt><dd>search on this page</dd>
        <dt><kbd>?</kbd></dt><dd>these keys</dd>
      </dl>
    </Dialog>
  );
}

/** The first link of the next row of the page's lists. */
function step(by: number) {
  const links = [...document.querySelectorAll<HTMLElement>("main tbody tr a[href]:first-of-type")].filter((link, at, all) => {
    const row = link.closest("tr");
    return all.findIndex((other) => other.closest("tr") === row) === at;
  });
  const row = document.activeElement?.closest("tr");
  const at = links.findIndex((link) => row && link.closest("tr") === row);
  links[Math.max(0, Math.min(links.length - 1, at + by))]?.focus();
}
