import { useCallback } from "react";
import { type LimitName, type LimitsInUse, limitNames, nearPart, type StorageUse } from "../../client/index.ts";
import { useSignedIn } from "../session/session.ts";
import { useRequest } from "../session/use-request.ts";

const number = new Intl.NumberFormat("en");
export const numberText = (value: number): string => number.format(value);

const units = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"] as const;

export const bytesText = (bytes: number): string => {
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  const format = { style: "unit", unit: units[power] ?? "byte", maximumFractionDigits: 1 } as const;
  return new Intl.NumberFormat("en", format).format(bytes / 1000 ** power);
};

/** How much of its room an agent or a space stores; null while there is room. */
export const storageWords = (storage: StorageUse | undefined): string | null => {
  if (!storage || storage.state === "ok") return null;
  const stores = `Stores ${bytesText(storage.bytes)} of ${bytesText(storage.maxBytes)}`;
  return storage.state === "near"
    ? `${stores}: once it is full, what is new is refused.`
    : `${stores}, or its workspace is full: what is new is refused until something is deleted.`;
};

/** The name and the storage behind an id, as far as it is there and an admin may read it. */
export type About = { name?: string; storage?: StorageUse | undefined };

/** Asks what an entity or a space is called, and what it stores. */
export const useAbout = (): ((id: string) => Promise<About>) => {
  const { client } = useSignedIn();
  return useCallback(
    async (id) => {
      try {
        if (id.startsWith("spc_")) return await client.getSpace(id);
        const entity = await client.getEntity(id);
        return entity.type === "agent" ? await client.getAgent(id) : entity;
      } catch {
        return {}; // It is deleted, or confidential: its id is all that there is to show.
      }
    },
    [client],
  );
};

const names: Record<LimitName, string> = {
  maxAgents: "Agents",
  maxEntities: "People and services",
  maxSpaces: "Spaces",
  maxStorageBytes: "Storage",
  maxTokensPerDay: "Tokens leased today",
};

/**
 * Whether the day's tokens are spent, by the audit log's newest `tokens.spent`. What is left of them is too little for a
 * step then, and nobody leases it.
 */
export const areTokensSpent = (limit: number | undefined, noted: Record<string, unknown> = {}): boolean => {
  const isOfToday = noted.day === new Date().toISOString().slice(0, 10);
  return isOfToday && limit !== undefined && Number(noted.maxTokensPerDay) >= limit;
};

/** The operator's limits, and what is used of each. */
export const Limits = ({ limits, used, isSpent = false }: LimitsInUse & { isSpent?: boolean }) => {
  const partOf = (name: LimitName): number => {
    const limit = limits[name] ?? Number.POSITIVE_INFINITY;
    return used[name] >= limit || (isSpent && name === "maxTokensPerDay") ? 1 : used[name] / limit;
  };
  // Nobody leases tokens where they have no limit.
  const shown = limitNames.filter((name) => name !== "maxTokensPerDay" || limits[name] !== undefined);
  return (
    <>
      <ul>
        {shown.map((name) => {
          const text = name === "maxStorageBytes" ? bytesText : numberText;
          return (
            <li key={name} className="row between numeric">
              <span className="soft">{names[name]}</span>
              <span>
                {text(used[name])} {limits[name] !== undefined && `of ${text(limits[name])} `}
                {partOf(name) >= nearPart && (
                  <span className="badge tone-warning">{partOf(name) < 1 && "nearly "}used up</span>
                )}
              </span>
            </li>
          );
        })}
      </ul>
      {shown.some((name) => partOf(name) >= 1) && (
        <p className="notice tone-danger" role="alert">
          What is new is refused where a limit is used up: delete what you need no more, or ask the operator for more.
        </p>
      )}
    </>
  );
};

const maxShown = 20;

/** Each was noted in the audit log as it came near; those that have room again by now are left out. */
export const NearTheEnd = () => {
  const { client } = useSignedIn();
  const about = useAbout();
  const { answer } = useRequest(
    useCallback(async () => {
      const { items } = await client.audit({ action: "storage.near", limit: 100 });
      const ids = [...new Set(items.map(({ target }) => target))].filter((id) => !id.startsWith("wsp_"));
      const found = await Promise.all(ids.slice(0, maxShown).map(async (id) => ({ id, about: await about(id) })));
      return found.filter((one) => storageWords(one.about.storage) !== null);
    }, [client, about]),
  );
  return answer?.map(({ id, about: { name, storage } }) => (
    <p key={id}>
      <strong>{name ?? id}</strong> <span className="small soft">{storageWords(storage)}</span>
    </p>
  ));
};
