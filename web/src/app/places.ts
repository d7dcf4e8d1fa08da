import { useQuery } from "@tanstack/react-query";
import { sessionQuery } from "../api/queries";
import { allows, type Role } from "../parts/Allowed";
import type { IconName } from "../parts/icons";

type Place = "/" | "/dags" | "/runs" | "/capacity" | "/assets" | "/backfills" | "/fleet" | "/quarantine" | "/insights" | "/events" | "/notifications" | "/connections" | "/settings" | "/users" | "/tokens" | "/sessions";
export const PLACES: { to: Place; name: string; icon: IconName; key: string; needs?: Role; whole?: true }[] = [
  { to: "/", name: "Home", icon: "home", key: "h" },
  { to: "/dags", name: "DAGs", icon: "dags", key: "d" },
  { to: "/runs", name: "Runs", icon: "runs", key: "r" },
  { to: "/capacity", name: "Capacity", icon: "capacity", key: "c" },
  { to: "/assets", name: "Assets", icon: "asset", key: "a" },
  { to: "/backfills", name: "Backfills", icon: "backfills", key: "b" },
  { to: "/fleet", name: "Fleet", icon: "fleet", key: "f", whole: true },
  { to: "/quarantine", name: "Quarantine", icon: "aside", key: "q" },
  { to: "/insights", name: "Insights", icon: "insights", key: "i", whole: true },
  { to: "/events", name: "Events", icon: "events", key: "e", needs: "operator" },
  { to: "/notifications", name: "Notifications", icon: "bell", key: "o", whole: true },
  { to: "/connections", name: "Connections", icon: "key", key: "v", needs: "author", whole: true },
  { to: "/settings", name: "Settings", icon: "settings", key: "s" },
  { to: "/users", name: "Users", icon: "users", key: "u", needs: "admin" },
  { to: "/tokens", name: "Tokens", icon: "token", key: "t", needs: "admin" },
  { to: "/sessions", name: "Sessions", icon: "session", key: "n" },
];

/** Those that one's role is for. What shows everybody's work is for those whose role counts everywhere. */
export function usePlaces() {
  const session = useQuery(sessionQuery).data;
  return PLACES.filter((place) => (!place.needs || (session && allows(session.role, place.needs))) && !(place.whole && session?.scope));
}
