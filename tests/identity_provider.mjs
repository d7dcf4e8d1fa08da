// A provider of identities for tests: oidc-provider, with people who have no passwords, on a free port that it prints.
import { createServer } from "node:http";

const [library, redirectUri] = process.argv.slice(2);
const groups = { ada: ["ops"], eva: ["etl", "hr"], bob: ["guests"], nil: null, number: 3, object: { ops: true }, mixed: ["ops", 3] };
const names = { slash: "ops/ada", own: "Scheduler", role: "role:admin", turned: "ada\u202e" }; // of people who are in the group ops
const { Provider } = await import(library);
const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: "evenflow",
        client_secret: "a secret of the client",
        redirect_uris: [redirectUri],
        post_logout_redirect_uris: [new URL("/login", redirectUri).href],
      },
    ],
    scopes: ["openid", "profile", "email", "groups"],
    claims: { openid: ["sub"], profile: ["preferred_username"], groups: ["groups"] },
    conformIdTokenClaims: false,
    features: { devInteractions: { enabled: true }, rpInitiatedLogout: { enabled: true } },
    pkce: { methods: ["S256"], required: () => true },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, preferred_username: names[id] ?? `${id}.of.provider`, groups: id in groups ? groups[id] : ["ops"] }) }),
  });
  server.on("request", provider.callback());
  console.log(issuer);
});
