/** Encrypted Content-Encoding (RFC 8188), by its author. It has no types. */
declare module "http_ece" {
  export const decrypt: (
    body: Buffer,
    how: { version: "aes128gcm"; privateKey: import("node:crypto").ECDH; authSecret: string },
  ) => Buffer;
}
