// A stream of server-sent events, for as long as somebody sees the page: a browser has few connections to a host. One that was cut goes on
// behind what was heard, as the browser does by itself.
const PAUSE_MS = 5_000; // before a stream that was refused is asked for again

interface Listening {
  at: () => string; // asked whenever the stream begins anew
  heard: Record<string, (data: string) => void>; // by the name of the event
  opened?: () => void;
  lost?: () => void; // by an error; it comes back, or was refused
  closed?: () => void; // as the page is not seen any more, or left
  refused?: () => void; // instead of asking again
}

/** Returns what ends it. */
export function listen({ at, heard, opened, lost, closed, refused }: Listening): () => void {
  let stream: EventSource | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const close = () => {
    clearTimeout(timer);
    stream?.close();
    stream = null;
  };
  const start = () => {
    if (stream || document.hidden) return;
    const mine = new EventSource(at());
    stream = mine;
    mine.onopen = () => opened?.();
    mine.onerror = () => {
      lost?.();
      if (mine.readyState !== EventSource.CLOSED) return; // the browser tries again
      close();
      if (refused) refused();
      else timer = setTimeout(start, PAUSE_MS);
    };
    for (const [event, hear] of Object.entries(heard)) mine.addEventListener(event, (told) => hear((told as MessageEvent<string>).data));
  };
  const stop = () => {
    close();
    closed?.();
  };
  const onSight = () => (document.hidden ? stop() : start());
  document.addEventListener("visibilitychange", onSight);
  start();
  return () => {
    document.removeEventListener("visibilitychange", onSight);
    stop();
  };
}
