import { describe, expect, it } from "vitest";
import { ROLES } from "../api/words";
import { allows } from "./Allowed";

describe("roles", () => {
  it("are a ladder", () => {
    expect(ROLES.map((one) => ROLES.filter((other) => allows(one, other)).length)).toEqual([1, 2, 3, 4]);
  });
  it("that a newer API has are judged by it", () => {
    expect(allows("auditor", "admin")).toBe(true);
  });
});
