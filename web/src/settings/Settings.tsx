import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { ask, type Schemas } from "../api/client";
import { settingHistoryQuery, settingsQuery } from "../api/queries";
import { useTitle } from "../app/title";
import { Allowed } from "../parts/Allowed";
import { Field } from "../parts/Field";
import { Found } from "../parts/parts";
import { Sure } from "../parts/Sure";
import { Table } from "../parts/Table";
import { Time } from "../parts/time";
import { quoted } from "../parts/words";

type Setting = Schemas["SettingValue"];

export function Settings() {
  useTitle("Settings");
  const settings = useQuery(settingsQuery);
  const [changed, setChanged] = useState<Setting | null>(null);
  return (
    <div className="page">
      <h1>Settings</h1>
      <p className="quiet">They hold for the whole Evenflow, and take effect without a restart. What a host sets for itself stands in its environment.</p>
      <Found of={settings}>
        {(page) => (
          <Table
            label="Settings"
            rows={page.items}
            keyOf={(one) => one.name}
            columns={[
              { name: "Setting", cell: (one) => <strong>{one.name}</strong> },
              { name: "Value", cell: (one) => <code>{shown(one.value)}</code> },
              { name: "Meaning", as: "wide", cell: (one) => one.meaning },
              { name: "Otherwise", cell: (one) => <code className="quiet">{shown(one.default)}</code> },
              { name: "Changed", cell: (one) => (one.changed_at ? <><Time at={one.changed_at} /> <span className="quiet">by {one.changed_by}</span></> : <span className="quiet">never</span>) },
              { name: "Change", hidden: true, as: "right", cell: (one) => <Allowed to="operator"><button type="button" onClick={() => setChanged(one)} aria-label={`Change ${one.name}`}>Change</button></Allowed> },
            ]}
          />
        )}
      </Found>
      {changed && <Change setting={changed} close={() => setChanged(null)} />}
    </div>
  );
}

const shown = (value: unknown) => (value === null || value === undefined ? "none" : typeof value === "string" ? value : JSON.stringify(value));

/** A text is a value as it is; all else is JSON. Undefined: it is none. */
function read(text: string, isText: boolean): unknown {
  if (isText) return text;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function Change({ setting, close }: { setting: Setting; close: () => void }) {
  const isText = typeof setting.default === "string";
  const [text, setText] = useState(isText ? String(setting.value) : JSON.stringify(setting.value));
  const history = useQuery(settingHistoryQuery(setting.name));
  const value = read(text, isText);
  const isDefault = JSON.stringify(value) === JSON.stringify(setting.default);
  const act = () =>
    isDefault
      ? ask("delete", "/api/v1/settings/{name}", { names: { name: setting.name } })
      : ask("put", "/api/v1/settings/{name}", { names: { name: setting.name }, body: { value } });
  return (
    <Sure
      title={setting.name}
      verb={isDefault ? "Set as at first" : "Set"}
      isGood={value !== undefined}
      command={isDefault ? `evenflow settings unset ${setting.name}` : `evenflow settings set ${setting.name} ${quoted(text)}`}
      act={act}
      close={close}
    >
      <p>{setting.meaning}</p>
      <Field id="setting" label="Value" hint={`${setting.kind}; ${shown(setting.default)} at first`} value={text} change={setText} aria-invalid={value === undefined} />
      <Found of={history}>
        {(page) =>
          page.items.length ? (
            <ul className="touched" aria-label="What it was before">
              {page.items.map((one) => (
                <li key={one.version}>
                  <code>{one.unset ? "as at first" : shown(one.value)}</code> <span className="quiet">by {one.changed_by}, <Time at={one.changed_at} /></span>
                </li>
              ))}
            </ul>
          ) : (
            <p className="quiet">It has not been changed yet.</p>
          )
        }
      </Found>
    </Sure>
  );
}
