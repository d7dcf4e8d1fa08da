import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import type { Schemas } from "../api/client";
import { diffQuery, versionsQuery } from "../api/queries";
import { usePages } from "../parts/paging";
import { Empty, Found, Section } from "../parts/parts";
import { Table } from "../parts/Table";
import { Time } from "../parts/time";
import { count } from "../parts/words";

const PAGE = 100;

/** The versions of a DAG, and what changed between two: settings, tasks and code. */
export function VersionsTab() {
  const { dagId } = useParams({ from: "/dags/$dagId" });
  const { after } = useSearch({ from: "/dags/$dagId/versions" });
  const { from, pages } = usePages("Newest", "Older");
  const versions = useQuery(versionsQuery(dagId, { ...from, limit: PAGE }));
  return (
    <Found of={versions}>
      {(page) => {
        const chosen = page.items.find((one) => one.version_number === after) ?? page.items[0];
        return (
          <>
            <Table
              label="Versions"
              rows={page.items}
              keyOf={(one) => String(one.version_number)}
              columns={[
                { name: "Version", cell: (one) => <Link to="." search={(before: Record<string, unknown>) => ({ ...before, after: one.version_number, before: undefined })} aria-current={one === chosen ? "true" : undefined}>{one.version_number}</Link> },
                { name: "Since", cell: (one) => <Time at={one.created_at} as="moment" /> },
                { name: "Tasks", as: "right", cell: (one) => count(one.tasks) },
                { name: "Runs", as: "right", cell: (one) => count(one.runs) },
                { name: "Under way", as: "right", cell: (one) => (one.live_runs ? count(one.live_runs) : "") },
                { name: "File", as: "wide", cell: (one) => <code>{one.file}</code> },
                { name: "Revision", cell: (one) => one.revision && <code>{one.revision.slice(0, 12)}</code> },
                { name: "Code", hidden: true, as: "right", cell: (one) => <Link to="/dags/$dagId/code" params={{ dagId }} search={{ version: one.version_number }}>Code</Link> },
              ]}
            />
            {pages(page.next)}
            {chosen && <Between dagId={dagId} versions={page.items} after={chosen.version_number} goesOn={page.more} />}
          </>
        );
      }}
    </Found>
  );
}

function Between({ dagId, versions, after, goesOn }: { dagId: string; versions: Schemas["DagVersion"][]; after: number; goesOn: boolean }) {
  const { before: asked } = useSearch({ from: "/dags/$dagId/versions" });
  const navigate = useNavigate();
  const older = versions.filter((one) => one.version_number < after);
  const before = asked !== undefined && asked < after ? asked : older[0]?.version_number;
  const diff = useQuery({ ...diffQuery(dagId, before ?? 0, after), enabled: before !== undefined });
  if (before === undefined)
    return <p className="quiet note-below">{goesOn ? "The versions before it are on the next page." : "It is the first version: there is nothing to compare."}</p>;
  return (
    <Section
      title={`What version ${after} changed`}
      aside={
        <label>
          since version{" "}
          <select value={before} onChange={(event) => void navigate({ to: ".", search: (kept: Record<string, unknown>) => ({ ...kept, after, before: Number(event.target.value) }), replace: true })}>
            {older.map((one) => (
              <option key={one.version_number} value={one.version_number}>
                {one.version_number}
              </option>
            ))}
          </select>
        </label>
      }
    >
      <Found of={diff}>
        {(found) =>
          found.added.length + found.removed.length + found.changes.length + found.files.length ? <Changes diff={found} /> : <Empty title="They have the same settings, tasks and code." />
        }
      </Found>
    </Section>
  );
}

function Changes({ diff }: { diff: Schemas["VersionDiff"] }) {
  return (
    <>
      {diff.added.length > 0 && <p className="change">Tasks that came: {diff.added.map((name) => <code key={name} className="came">{name}</code>)}</p>}
      {diff.removed.length > 0 && <p className="change">Tasks that went: {diff.removed.map((name) => <code key={name} className="went">{name}</code>)}</p>}
      {diff.changes.length > 0 && (
        <Table
          label="Settings that changed"
          rows={diff.changes}
          keyOf={(one) => `${one.task_id} ${one.setting}`}
          columns={[
            { name: "Of", cell: (one) => one.task_id ?? "the DAG" },
            { name: "Setting", cell: (one) => one.setting },
            { name: "Before", cell: (one) => <code className="went">{shown(one.before)}</code> },
            { name: "After", cell: (one) => <code className="came">{shown(one.after)}</code> },
          ]}
        />
      )}
      {diff.files.map((file) => (
        <section key={file.file} className="file">
          <h3>
            {file.file} <span className="quiet">{file.kind}</span>
          </h3>
          {file.text === null || file.text === undefined ? <p className="quiet">It is no text, or too long to be compared.</p> : <Patch file={file.file} text={file.text} />}
        </section>
      ))}
    </>
  );
}

const shown = (value: unknown) => (value === null || value === undefined ? "none" : typeof value === "string" ? value : JSON.stringify(value));

function Patch({ file, text }: { file: string; text: string }) {
  return (
    <div className="code" tabIndex={0} role="region" aria-label={`Changes of ${file}`}>
      {text.replace(/\n$/, "").split("\n").filter((line) => !/^(---|\+\+\+) /.test(line)).map((line, at) => (
        <div key={at} className={line.startsWith("+") ? "came" : line.startsWith("-") ? "went" : line.startsWith("@@") ? "quiet" : undefined}>
          <code>{line || " "}</code>
        </div>
      ))}
    </div>
  );
}
