import * as z from "zod";
import { Session } from "../protocol/workspace.ts";
import { createCredentials } from "./credentials.ts";
import { createHttp } from "./http.ts";

const path = "/v1/session";

/** The session of this browser, on Colloquy's own page: a cookie that no script reads. `entityId`: whose the page takes it for. */
export const browserSession = (baseUrl: string, entityId?: string) => {
  const http = createHttp(baseUrl, createCredentials(""), entityId);
  return {
    current: (): Promise<Session | null> =>
      http({ path, answer: z.object({ session: Session.nullable() }) }).then(({ session }) => session),
    /** Rejects with `signed_in` where the browser would leave its session for another, until `replace`; else with `unauthorized`. */
    signIn: (code: string, replace: boolean): Promise<Session> =>
      http({ method: "POST", path, body: { code, replace }, answer: z.object({ session: Session }) }).then(
        ({ session }) => session,
      ),
    /** Rejects with `signed_in` where the session is not of `entityId`. */
    signOut: (): Promise<unknown> => http({ method: "DELETE", path, answer: z.unknown() }),
  };
};
