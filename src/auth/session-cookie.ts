import { parse, serialize } from "hono/utils/cookie";
import { ColloquyError } from "../shared/errors.ts";
import { tokenPattern } from "./tokens.ts";

/**
 * The page's session: an entity's token in a cookie that no script reads and no other site's page sends (C14).
 *
 * Invariants
 * 1. A session counts only for requests of its own origin. Browsers of today say where a request comes from; one that
 *    says nothing sends the cookie to its own site alone.
 * 2. Over https the cookie is `__Host-`: no subdomain can set it, and it never goes out in the clear.
 */
const name = "colloquy_session";
const secureName = `__Host-${name}`;

const isHttps = (address: string): boolean => URL.parse(address)?.protocol === "https:";

/** Before a proxy that ends TLS, only the page's origin says that its address is https. */
const isSecure = ({ url, headers }: Request): boolean => isHttps(url) || isHttps(headers.get("origin") ?? "");

/** The token in the request's cookie, not yet verified. */
export const sessionToken = ({ url, headers }: Request): string | undefined => {
  const cookies = parse(headers.get("cookie") ?? "");
  // Over https the other name may be a subdomain's.
  const token = cookies[secureName] ?? (isHttps(url) ? undefined : cookies[name]);
  return token !== undefined && tokenPattern.test(token) ? token : undefined;
};

/** The page shows one person, and the browser's session is another's, who signed in in another tab. */
export const sessionOfAnother = (): ColloquyError =>
  new ColloquyError("signed_in", "This browser is signed in as somebody else by now. Nothing was done.");

/** Throws `foreign_origin` where a browser says that another origin's page makes the request. */
export const requireOwnOrigin = ({ url, headers }: Request): void => {
  const origin = headers.get("origin");
  const site = headers.get("sec-fetch-site") ?? "none";
  const isOwn = origin === null || URL.parse(origin)?.host === new URL(url).host;
  if (isOwn && (site === "same-origin" || site === "none")) return;
  throw new ColloquyError(
    "foreign_origin",
    "A session is for its own page: from another origin, send Authorization: Bearer with a token.",
  );
};

const cookie = (request: Request, token: string, maxAge: number): string => {
  const secure = isSecure(request);
  const options = { path: "/", httpOnly: true, sameSite: "Strict", secure, maxAge } as const;
  return serialize(secure ? secureName : name, token, options);
};

/** The `Set-Cookie` that begins a session, or ends it. */
export const beginSession = (request: Request, token: string, seconds: number): string =>
  cookie(request, token, seconds);
export const endSession = (request: Request): string => cookie(request, "", 0);
