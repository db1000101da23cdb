import { OpenAPIHono } from "@hono/zod-openapi";
import type { Env } from "../shared/env.ts";

export const app = new OpenAPIHono<{ Bindings: Env }>();
app.get("/healthz", (context) => context.json({ ok: true }));
