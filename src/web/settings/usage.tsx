import { useCallback, useState } from "react";
import type { UsageBy, UsageEntry } from "../../client/index.ts";
import { LinkButton } from "../look/button.tsx";
import { useSignedIn } from "../session/session.ts";
import { useRequest } from "../session/use-request.ts";
import { type About, bytesText, numberText, useAbout } from "./room.tsx";

const titles: Record<UsageBy, string> = { day: "Day", agent: "Agent", person: "Person or service", space: "Space" };
const kinds = Object.keys(titles) as UsageBy[];

export type UsageRow = UsageEntry & { about?: About | undefined };
type UsageTableProps = {
  by: UsageBy;
  rows: readonly UsageRow[];
  total: Pick<UsageEntry, "tokens" | "runs" | "messages">;
};

/** What was used by each, and in all. Messages are people's and services', so agents have no such column. */
export const UsageTable = ({ by, rows, total }: UsageTableProps) => {
  const stores = by === "agent" || by === "space";
  const cells = ({ tokens, runs, messages, about }: Partial<UsageRow>) => (
    <>
      <td>{numberText(tokens ?? 0)}</td>
      <td>{numberText(runs ?? 0)}</td>
      {by !== "agent" && <td>{numberText(messages ?? 0)}</td>}
      {stores && <td>{about?.storage && bytesText(about.storage.bytes)}</td>}
    </>
  );
  return (
    <div className="usage">
      <table className="numeric">
        <thead className="small soft">
          <tr>
            {[titles[by], "Tokens", "Runs", ...(by === "agent" ? [] : ["Messages"]), ...(stores ? ["Stores"] : [])].map(
              (title) => (
                <th key={title} scope="col">
                  {title}
                </th>
              ),
            )}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.id ?? row.day}>
              <th scope="row" className="wrap">
                {row.about?.name ?? row.id ?? row.day}
              </th>
              {cells(row)}
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">The whole workspace</th>
            {cells(total)}
          </tr>
        </tfoot>
      </table>
    </div>
  );
};

const [few, many] = [20, 100];

/** Tokens, runs and messages of the last 30 days, by what an admin chooses. */
export const Usage = () => {
  const { client } = useSignedIn();
  const about = useAbout();
  const [by, setBy] = useState<UsageBy>("day");
  const [limit, setLimit] = useState(few);
  const { answer, problem } = useRequest(
    useCallback(async () => {
      const { items, total, nextCursor } = await client.usage({ by, limit });
      const rows = items.map(async (item) => (item.id ? { ...item, about: await about(item.id) } : item));
      return { by, rows: await Promise.all(rows), total, hasMore: nextCursor !== null };
    }, [client, about, by, limit]),
  );
  return (
    <>
      <label className="row">
        <span className="field-label">By</span>
        <select className="input" value={by} onChange={({ target }) => setBy(kinds[target.selectedIndex] ?? "day")}>
          {kinds.map((kind) => (
            <option key={kind} value={kind}>
              {titles[kind].toLowerCase()}
            </option>
          ))}
        </select>
      </label>
      {problem && <p className="small danger">{problem}</p>}
      {answer && <UsageTable {...answer} />}
      {answer?.hasMore && limit === few && <LinkButton onClick={() => setLimit(many)}>Show more</LinkButton>}
      <p className="small soft">
        Of the last 30 days, UTC. What is newer than a minute may be missing. What plans and services began is no
        person's.
      </p>
    </>
  );
};
