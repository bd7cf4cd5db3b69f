// Signs and verifies webhooks with the cryptography of Node, by the providers' documents alone. The argument is JSON with
// `command`: `fal` signs like fal, `google` signs tokens like Google, `verify` verifies a signature of fal's scheme. What
// it says is JSON, too. Keys are made for each run.

import { createHash, createPublicKey, generateKeyPairSync, sign, verify } from "node:crypto";

const asked = JSON.parse(process.argv[2]);

/** What fal signs: request, user, time and the hash of the body, one per line. */
function falMessage({ requestId, userId, timestamp, body }) {
  const hash = createHash("sha256").update(body, "utf8").digest("hex");
  return Buffer.from([requestId, userId, timestamp, hash].join("\n"), "utf8");
}

function fal() {
  const pairs = [0, 1].map(() => generateKeyPairSync("ed25519"));
  const signatures = pairs.map(({ privateKey }) => sign(null, falMessage(asked), privateKey).toString("hex"));
  return { jwks: { keys: pairs.map(({ publicKey }) => publicKey.export({ format: "jwk" })) }, signatures };
}

function verifyFal() {
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: asked.x }, format: "jwk" });
  return { verified: verify(null, falMessage(asked), key, Buffer.from(asked.signature, "hex")) };
}

/** A JSON Web Token, signed with RSA and SHA-256. */
function token(privateKey, header, claims) {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const signed = `${part(header)}.${part(claims)}`;
  return `${signed}.${sign("sha256", Buffer.from(signed), privateKey).toString("base64url")}`;
}

function google() {
  const [own, other] = [0, 1].map(() => generateKeyPairSync("rsa", { modulusLength: 2048 }));
  const now = asked.timestamp;
  const [header, claims] = [{ alg: "RS256", typ: "JWT", kid: "k1" }, { iat: now, exp: now + 600 }];
  const good = token(own.privateKey, header, claims);
  return {
    jwks: { keys: [{ ...own.publicKey.export({ format: "jwk" }), kid: "k1", alg: "RS256", use: "sig" }] },
    good,
    forged: {
      "another key": token(other.privateKey, header, claims),
      "another kid": token(own.privateKey, { ...header, kid: "k2" }, claims),
      "other claims": [good.split(".")[0], token(own.privateKey, header, { iat: now }).split(".")[1], good.split(".")[2]].join("."),
    },
    stale: token(own.privateKey, header, { iat: now - 7_200, exp: now - 3_600 }),
  };
}

console.log(JSON.stringify({ fal, google, verify: verifyFal }[asked.command]()));
