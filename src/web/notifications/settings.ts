import { createContext, use, useCallback, useState } from "react";
import type { ChangeSettings, LineState, Settings } from "../../client/index.ts";
import { useSignedIn } from "../session/session.ts";
import { useRequest } from "../session/use-request.ts";

type Known = {
  /** Null until they are known. */
  settings: Settings | null;
  problem: string | null;
  change: (changes: ChangeSettings) => Promise<void>;
};

const nothing: Known = { settings: null, problem: null, change: async () => undefined };
export const SettingsContext = createContext<Known>(nothing);
export const useSettings = (): Known => use(SettingsContext);

/** What alerts this person, as the line tells it where another page of theirs changes it. */
export const useOwnSettings = (line: LineState): Known => {
  const { client } = useSignedIn();
  const { answer, problem } = useRequest(useCallback(() => client.getSettings(), [client]));
  const told = line.status === "ready" ? line.settings : null;
  const [newest, setNewest] = useState<{ told: Settings | null; settings: Settings } | null>(null);
  // What this page changed is newer than what the line told before.
  const own = newest?.told === told ? newest?.settings : undefined;
  const change = useCallback(
    async (changes: ChangeSettings): Promise<void> => {
      setNewest({ told, settings: await client.changeSettings(changes) });
    },
    [client, told],
  );
  return { settings: own ?? told ?? answer, problem, change };
};
