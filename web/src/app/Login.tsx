import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useRouter, useSearch } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { ask } from "../api/client";
import { providerQuery, sessionQuery } from "../api/queries";
import { Field } from "../parts/Field";
import { Command } from "../parts/parts";
import { useTitle } from "./title";

/** A code stands behind the # of the address, which a browser tells to no server. It is taken out of the address at once. */
function takeCode(): string | null {
  const code = location.hash.slice(1);
  if (!code) return null;
  history.replaceState(history.state, "", location.pathname + location.search);
  return code;
}

export function Login() {
  useTitle("Log in");
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [token, setToken] = useState("");
  const provider = useQuery(providerQuery).data;
  const begun = useRef(false);
  const client = useQueryClient();
  const router = useRouter();
  const { next } = useSearch({ from: "/login" });
  const login = useMutation({
    mutationFn: (shown: { code: string } | { token: string } | { name: string; password: string }) => ask("post", "/api/v1/session", { body: shown }),
    onSuccess: (session) => {
      client.setQueryData(sessionQuery.queryKey, session);
      router.history.replace(next?.startsWith("/") && !next.startsWith("//") ? next : "/");
    },
  });
  useEffect(() => {
    if (begun.current) return; // a code is good once, and effects run twice while one develops
    begun.current = true;
    const code = takeCode();
    if (code) login.mutate({ code });
  }, [login]);

  return (
    <main className="login">
      <img src="/mark.svg" alt="" width="40" height="40" />
      <h1>Evenflow</h1>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          login.mutate({ name: name.trim(), password });
        }}
      >
        <Field id="name" label="Name" value={name} change={setName} autoComplete="username" autoCapitalize="none" spellCheck={false} />
        <Field id="password" label="Password" value={password} change={setPassword} type="password" autoComplete="current-password" />
        <button type="submit" className="primary" disabled={!name.trim() || !password || login.isPending}>
          {login.isPending ? "Logging in" : "Log in"}
        </button>
      </form>
      {provider?.name && (
        <p>
          <a className="button" href={`/api/v1/identity/login?then=${encodeURIComponent(next ?? "/")}`}>
            Log in at {provider.name}
          </a>
        </p>
      )}
      {(login.error || provider?.refused) && (
        <p className="trouble" role="alert">
          {login.error?.message ?? provider?.refused}
        </p>
      )}
      <details>
        <summary>Without a password</summary>
        <p>
          Type this where Evenflow runs, and open the address that it prints:
          <Command text="evenflow ui" />
        </p>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            login.mutate({ token: token.trim() });
          }}
        >
          <Field id="token" label="Or show a token, once:" value={token} change={setToken} type="password" spellCheck={false} />
          <button type="submit" disabled={!token.trim() || login.isPending}>
            Show it
          </button>
        </form>
      </details>
      <p className="quiet">Neither is kept in this browser. The session lasts for twelve hours, or until you log out.</p>
    </main>
  );
}
