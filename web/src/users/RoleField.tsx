// Which role a user or a token has, and what that may.
import { ROLE_MAY, ROLES } from "../api/words";
import type { Role } from "../parts/Allowed";

export function RoleField({ role, change }: { role: Role; change: (role: Role) => void }) {
  return (
    <>
      <label htmlFor="role">Role</label>
      <select id="role" value={role} onChange={(event) => change(event.target.value as Role)}>
        {ROLES.map((one) => (
          <option key={one} value={one}>
            {one}: may {ROLE_MAY[one]}
          </option>
        ))}
      </select>
    </>
  );
}
