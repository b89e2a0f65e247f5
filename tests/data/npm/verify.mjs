// Reads [{secret, headers, body}] as JSON and writes, for each, whether the package accepts it.
import { readFileSync } from "node:fs";
import { Webhook } from "standardwebhooks";

const accepted = ({ secret, headers, body }) => {
  try {
    new Webhook(secret).verify(Buffer.from(body, "base64"), headers);
    return true;
  } catch {
    return false;
  }
};
console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(accepted)));
