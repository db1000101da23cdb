import { SignInLink } from "../../src/protocol/workspace.ts";
import { type Call, call, expectOk } from "./house.ts";

/** Signing in to the page, as a browser does at the page's own origin. */
export const origin = "https://colloquy.test";

/** The code of a sign-in link for a person that the bearer makes. */
export const codeBy = async (bearer: string, entityId: string, as?: string): Promise<string> => {
  const made = call(`/v1/entities/${entityId}/sign-in-links`, { method: "POST", bearer, ...(as ? { as } : {}) });
  return (await expectOk(SignInLink, made)).link.split("#sign-in=")[1] ?? "";
};

export const signIn = (code: string, cookie = ""): Promise<Response> =>
  call("/v1/session", { body: { code, replace: true }, headers: { origin, cookie } });

/** What the browser sends from then on. */
export const cookieOf = (answer: Response): string => (answer.headers.get("set-cookie") ?? "").split(";")[0] ?? "";

export const cookieBy = async (bearer: string, entityId: string): Promise<string> =>
  cookieOf(await signIn(await codeBy(bearer, entityId)));

export const withCookie = (cookie: string): Call => ({ headers: { origin, cookie } });
