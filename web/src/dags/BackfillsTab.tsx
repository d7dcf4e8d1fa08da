import { useParams } from "@tanstack/react-router";
import { BackfillList } from "../backfills/Backfills";

export function BackfillsTab() {
  const { dagId } = useParams({ from: "/dags/$dagId" });
  return <BackfillList dagId={dagId} />;
}
