import { expect, test } from "vitest";
import { createRedactor } from "../../../src/agent/tools/configured/redact.ts";
import { failureOf } from "../../../src/agent/tools/mcp/failure-of.ts";

test.each([{ status: 400 }, { code: -32602 }, { code: 7 }, {}])(
  "[S3] of a secret that the end of a server's words would cut nothing is told: %j",
  (about) => {
    const secret = "s3cret-and-long-enough";
    const error = Object.assign(new Error(`${"x".repeat(190)} ${secret} is wrong`), about);
    const { message } = failureOf(error, createRedactor([secret]));
    expect(message).toContain("xxx");
    expect(message).not.toContain("s3c");
  },
);
