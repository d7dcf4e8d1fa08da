// What is meant once happens once, however often it is asked for: after a second click, or when the answer to the first was lost.
import { useRef } from "react";

/** The key to send with a request: the same for the same one again, another for another. It ends with what is on the screen. */
export function useKey() {
  const sent = useRef({ said: "", key: "" });
  return (body: unknown) => {
    const said = JSON.stringify(body);
    if (sent.current.said !== said) sent.current = { said, key: madeKey() };
    return sent.current.key;
  };
}

// Not randomUUID(), which browsers have only where they trust the address.
const madeKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
