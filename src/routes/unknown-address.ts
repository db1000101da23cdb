import type { Context } from "hono";
import { problem } from "../shared/errors.ts";
import { problemResponse } from "./problems.ts";
import type { Route } from "./route.ts";

type Address = { pattern: RegExp; methods: string[] };

const addressesOf = (routes: Route[]): Address[] =>
  [...Map.groupBy(routes, ({ path }) => path)].map(([path, all]) => ({
    pattern: new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/\{[^}]+\}/g, "[^/]+")}$`),
    methods: all.flatMap(({ method }) => (method === "GET" ? ["GET", "HEAD"] : [method])),
  }));

/** Answers what no route took: 405 with `Allow` where the address takes another method, else 404. */
export const unknownAddress = (routes: Route[]): ((context: Context) => Response) => {
  let addresses: Address[] | undefined;
  return (context) => {
    addresses ??= addressesOf(routes);
    const { path, method } = context.req;
    const allowed = addresses.flatMap(({ pattern, methods }) => (pattern.test(path) ? methods : []));
    if (allowed.length === 0) {
      return problemResponse(problem("not_found", `There is no address ${path}: see /docs for those there are.`));
    }
    const allow = [...new Set(allowed)].sort().join(", ");
    return problemResponse(problem("method_not_allowed", `${path} takes ${allow}, not ${method}.`), { allow });
  };
};
