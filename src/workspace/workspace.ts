import { DurableObject } from "cloudflare:workers";
import type { Env } from "../shared/env.ts";

export class Workspace extends DurableObject<Env> {}
