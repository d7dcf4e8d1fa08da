// What pages say of a service.
import type { Schemas } from "../api/client";

/** Its own state, or that which a person has set of a worker; as `evenflow status` has it. */
export function stateOf(service: Schemas["ServiceStatus"], closed: Schemas["ObjectServiceState"][]): string {
  if (!service.healthy) return ["stopped", "lost"].includes(service.state) ? service.state : "silent";
  const set = closed.find((one) => service.kind === "worker" && one.kind === "worker" && one.name === service.name);
  return service.state === "active" && set ? set.state.replaceAll("_", " ") : service.state;
}

/** What processors say of the plugins of their environments, each once. */
export function pluginWarnings(services: Schemas["ServiceStatus"][]): string[] {
  const bundles = services.filter((service) => service.kind === "processor" && service.healthy).flatMap(({ detail }) => detail.bundles as Bundle[] | undefined ?? []);
  return [...new Set(bundles.flatMap((bundle) => bundle.warnings ?? []))].sort();
}

interface Bundle {
  warnings?: string[];
}
