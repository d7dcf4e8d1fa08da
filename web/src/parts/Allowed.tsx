// What one's role does not allow is shown, cannot be done, and says which role it needs.
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { sessionQuery } from "../api/queries";
import { ROLES } from "../api/words";

export type Role = (typeof ROLES)[number];

/** Whether who has this role may do what the other one is for. A role of a newer API is not known here: the API decides. */
export const allows = (role: string, needed: Role) => !ROLES.some((one) => one === role) || ROLES.indexOf(role as Role) >= ROLES.indexOf(needed);

/** Null when it is allowed, and while nobody knows yet. */
export function useWhyNot(needed: Role): string | null {
  const { data } = useQuery({ ...sessionQuery, enabled: false });
  return !data || allows(data.role, needed) ? null : `This is for the role ${needed}, and you have the role ${data.role}.`;
}

export function Allowed({ to, children }: { to: Role; children: ReactNode }) {
  const why = useWhyNot(to);
  if (why === null) return <>{children}</>;
  return (
    <fieldset disabled className="not-allowed" title={why} aria-label={why}>
      {children}
    </fieldset>
  );
}
