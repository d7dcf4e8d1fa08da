// A command line asks to be logged in: who is logged in here types its code, reads who asks, and answers.
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { ask, type Schemas } from "../api/client";
import { sessionQuery } from "../api/queries";
import { ROLE_MAY, ROLES } from "../api/words";
import { useTitle } from "../app/title";
import type { Role } from "../parts/Allowed";
import { Field } from "../parts/Field";
import { Trouble } from "../parts/parts";
import { Time } from "../parts/time";
import { Where } from "./Scope";

type Asking = Schemas["AskingDevice"];

export function Device() {
  useTitle("Log a command line in");
  const [code, setCode] = useState("");
  const [asking, setAsking] = useState<Asking | null>(null);
  const find = useMutation({
    mutationFn: () => ask("post", "/api/v1/device-logins/find", { body: { user_code: code } }),
    onSuccess: setAsking,
  });
  return (
    <div className="page">
      <h1>Log a command line in</h1>
      {asking ? (
        <Answer code={code} of={asking} again={() => (setAsking(null), setCode(""))} />
      ) : (
        <form
          className="narrow"
          onSubmit={(event) => {
            event.preventDefault();
            find.mutate();
          }}
        >
          <Field id="code" label={<>The code that <code>evenflow login</code> shows in your terminal</>} value={code} change={setCode} autoCapitalize="characters" spellCheck={false} placeholder="BCDF-GHJK" />
          <p className="quiet">Only one that you have asked for yourself. Whoever sends you a code wants to be you.</p>
          <footer>
            <button type="submit" className="primary" disabled={!code.trim() || find.isPending}>
              Look who asks
            </button>
          </footer>
          {find.error && <Trouble error={find.error} />}
        </form>
      )}
    </div>
  );
}

function Answer({ code, of, again }: { code: string; of: Asking; again: () => void }) {
  const [role, setRole] = useState(of.role as Role);
  const session = useQuery(sessionQuery);
  const [days, setDays] = useState(String(of.days));
  const answer = useMutation({
    mutationFn: (is_approved: boolean) => ask("post", "/api/v1/device-logins/answer", { body: { user_code: code, is_approved, role, days: Number(days) } }),
  });
  if (answer.data) {
    return (
      <>
        <p role="status">
          {answer.variables ? `${of.machine} is logged in as you in a moment. The page Sessions ends it.` : `${of.machine} is refused.`}
        </p>
        <p>
          <button type="button" onClick={again}>
            Answer another one
          </button>
        </p>
      </>
    );
  }
  return (
    <form
      className="narrow"
      onSubmit={(event) => {
        event.preventDefault();
        answer.mutate(true);
      }}
    >
      <p>
        <strong>{of.machine}</strong> asks from <strong>{of.address}</strong> to act as you. It began <Time at={of.began_at} />.
      </p>
      <label htmlFor="role">What it may</label>
      <select id="role" value={role} onChange={(event) => setRole(event.target.value as Role)}>
        {ROLES.slice(0, ROLES.indexOf(of.role as Role) + 1).map((one) => (
          <option key={one} value={one}>
            {one}: may {ROLE_MAY[one]}
          </option>
        ))}
      </select>
      <Field id="days" label="For how many days" value={days} change={setDays} type="number" min={1} max={of.days} required />
      <p>
        Where: <Where of={session.data?.scope} />
      </p>
      <p className="quiet">It never may more than you, nor elsewhere, and ends when you change your password or are disabled. Is that name yours, and the address where your terminal is?</p>
      <footer>
        <button type="button" className="danger" disabled={answer.isPending} onClick={() => answer.mutate(false)}>
          Refuse it
        </button>
        <button type="submit" className="primary" disabled={answer.isPending}>
          Let it act as me
        </button>
      </footer>
      {answer.error && <Trouble error={answer.error} />}
    </form>
  );
}
