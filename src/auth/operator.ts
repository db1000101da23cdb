import { digest, sameDigest } from "./same-text.ts";

let operators: { key: string; digest: Uint8Array } | undefined;

const digestOfKey = (key: string): Uint8Array => {
  if (operators?.key !== key) operators = { key, digest: digest(key) };
  return operators.digest;
};

/** Whether `presented` is the operator's key, in time that tells nothing. Without a key set, nobody is the operator. */
export const isOperator = (adminKey: string | undefined, presented: string): boolean =>
  adminKey !== undefined && adminKey !== "" && sameDigest(digestOfKey(adminKey), digest(presented));
