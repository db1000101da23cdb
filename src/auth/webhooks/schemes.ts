import type { HookScheme } from "../../protocol/hook.ts";
import { deriveKey } from "../../shared/ids.ts";
import { github } from "./github.ts";
import type { WebhookScheme } from "./scheme.ts";
import { sharedSecret } from "./shared-secret.ts";
import { standard } from "./standard.ts";

/** Every kind of sender that is known. */
export const schemes: Record<HookScheme, WebhookScheme> = { standard, github, header: sharedSecret };

const secretBytes = 32;

/** A new secret. It follows from `version`, so that a request that is sent again gets the same one again. */
export const deriveHookSecret = (signingSecret: string, scheme: HookScheme, version: string): string =>
  schemes[scheme].writeSecret(deriveKey(signingSecret, `hook-secret:${version}`, secretBytes));
