import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import { codeQuery, versionsQuery } from "../api/queries";
import { Empty, Found } from "../parts/parts";
import { painted } from "./python";

export function CodeTab() {
  const { dagId } = useParams({ from: "/dags/$dagId" });
  const { version = 0 } = useSearch({ from: "/dags/$dagId/code" });
  const navigate = useNavigate();
  const code = useQuery(codeQuery(dagId, version));
  const versions = useQuery(versionsQuery(dagId, { limit: 100 }));
  return (
    <>
      <p className="choose">
        <label htmlFor="version">Version</label>
        <select id="version" value={version} onChange={(event) => void navigate({ to: ".", search: { version: Number(event.target.value) || undefined }, replace: true })}>
          <option value={0}>the newest</option>
          {versions.data?.items.map((one) => (
            <option key={one.version_number} value={one.version_number}>
              {one.version_number}, since {one.created_at.slice(0, 16).replace("T", " ")}
            </option>
          ))}
        </select>
      </p>
      <Found of={code}>
        {(found) => (
          <>
            {found.files.map(({ file, text }) => (
              <section key={file} className="file">
                <h2>{file}</h2>
                {text === null ? <Empty title="It is no text, or too long to be shown." /> : <Text file={file} text={text ?? ""} />}
              </section>
            ))}
            {!found.files.length && <Empty title="This DAG has no code: it is part of Evenflow." />}
          </>
        )}
      </Found>
    </>
  );
}

function Text({ file, text }: { file: string; text: string }) {
  const lines = useMemo(() => (file.endsWith(".py") ? painted(text) : text.split("\n").map((line) => [{ kind: "", text: line }])), [file, text]);
  return (
    <div className="code" tabIndex={0} role="region" aria-label={`Code of ${file}`}>
      {lines.map((line, number) => (
        <div key={number}>
          <span className="line-number" aria-hidden="true">
            {number + 1}
          </span>
          <code>
            {line.map((part, at) => (part.kind ? <span key={at} className={`py-${part.kind}`}>{part.text}</span> : part.text))}
          </code>
        </div>
      ))}
    </div>
  );
}
