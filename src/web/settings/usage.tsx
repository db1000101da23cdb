import { useCallback, useState } from "react";
import type { UsageBy, UsageEntry } from "../../client/index.ts";
import { useSignedIn } from "../session/session.ts";
import { useRequest } from "../session/use-request.ts";
import { type About, bytesText, numberText, useAbout } from "./limits.tsx";

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
  const last = { agent: ["Stores"], space: ["Messages", "Stores"], person: ["Messages"], day: ["Messages"] }[by];
  const line = (name: string | undefined, { id, tokens, runs, messages, about }: UsageRow) => (
    <tr key={id ?? name}>
      <th scope="row" className="wrap">
        {name}
      </th>
      <td>{numberText(tokens)}</td>
      <td>{numberText(runs)}</td>
      {by !== "agent" && <td>{numberText(messages)}</td>}
      {last.includes("Stores") && <td>{about?.storage && bytesText(about.storage.bytes)}</td>}
    </tr>
  );
  return (
    <table className="numeric">
      <thead className="small soft">
        <tr>
          {[titles[by], "Tokens", "Runs", ...last].map((title) => (
            <th key={title} scope="col">
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{rows.map((row) => line(row.about?.name ?? row.id ?? row.day, row))}</tbody>
      <tfoot className="medium">{line("The whole workspace", total)}</tfoot>
    </table>
  );
};

/** So many are shown, those who used the most. */
const most = 50;

/** Tokens, runs and messages of the last 30 days, by what an admin chooses. */
export const Usage = () => {
  const { client } = useSignedIn();
  const about = useAbout();
  const [by, setBy] = useState<UsageBy>("day");
  const { answer, problem } = useRequest(
    useCallback(async () => {
      const { items, total } = await client.usage({ by, limit: most });
      const rows = items.map(async (item) => (item.id ? { ...item, about: await about(item.id) } : item));
      return { by, rows: await Promise.all(rows), total };
    }, [client, about, by]),
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
      <p className="small soft">
        Of the last 30 days, UTC: the {most} who used the most. What is newer than a minute may be missing. What plans
        and services began is no person's.
      </p>
    </>
  );
};
