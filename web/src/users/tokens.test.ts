import { expect, test } from "vitest";
import { createCommand } from "./tokens";

test("a tool's token has a role and where that counts", () => {
  const asked = { kind: "operator" as const, name: "the board", role: "viewer", serves: ["left over"], days: "7" };
  expect(createCommand(asked, "--tag etl")).toBe("evenflow tokens create operator --name 'the board' --role viewer --tag etl --days 7");
});

test("a fleet's token has what its services serve, and no role", () => {
  const asked = { kind: "worker" as const, name: "", role: "viewer", serves: ["gpu", "big one"], days: "" };
  expect(createCommand(asked, "--tag etl")).toBe("evenflow tokens create worker --queue gpu --queue 'big one'");
  expect(createCommand({ ...asked, kind: "processor", serves: ["etl"] }, "")).toBe("evenflow tokens create processor --bundle etl");
});
