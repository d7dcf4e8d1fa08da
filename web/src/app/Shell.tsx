import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, Outlet, useLocation, useNavigate, useParams } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { ask, forget, Refusal } from "../api/client";
import { useLostSince } from "../api/connection";
import { useLive } from "../api/live";
import { sessionQuery } from "../api/queries";
import { choose, useChoices } from "../parts/choices";
import { Icon } from "../parts/icons";
import { Time } from "../parts/time";
import { Palette } from "./Palette";
import { Keys } from "./Keys";
import { usePlaces } from "./places";

export function Shell() {
  const { pathname } = useLocation();
  return pathname === "/login" ? <Outlet /> : <Inside />;
}

function Inside() {
  const session = useQuery(sessionQuery);
  const location = useLocation();
  const navigate = useNavigate();
  useLive(useParams({ strict: false }), session.data !== undefined);
  const loggedOut = session.error instanceof Refusal && session.error.status === 401;
  useEffect(() => {
    if (loggedOut) void navigate({ to: "/login", search: { next: location.href }, replace: true });
  }, [loggedOut, location.href, navigate]);
  if (!session.data && !session.error) return <div className="loading page" role="status" aria-label="Loading" />;
  if (loggedOut) return null;
  return (
    <div className="shell">
      <a href="#main" className="skip">
        To the page
      </a>
      <Side name={session.data?.name ?? ""} />
      <div className="body">
        <Lost />
        <main id="main" tabIndex={-1}>
          <Outlet />
        </main>
      </div>
      <Keys />
    </div>
  );
}

function Side({ name }: { name: string }) {
  const [palette, setPalette] = useState(false);
  const [menu, setMenu] = useState(false); // on a phone, where pages are behind a button
  const { href } = useLocation();
  useEffect(() => setMenu(false), [href]);
  const { theme, zone } = useChoices();
  const places = usePlaces();
  const client = useQueryClient();
  const navigate = useNavigate();
  const logOut = async () => {
    const { by_provider } = await ask("delete", "/api/v1/session");
    client.clear();
    forget();
    if (by_provider) {
      location.assign("/api/v1/identity/logout");
      return;
    }
    await navigate({ to: "/login", search: {} });
  };
  const dark = theme === "dark" || (theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  return (
    <header className={menu ? "side menu-open" : "side"} onKeyDown={(event) => event.key === "Escape" && setMenu(false)}>
      <Link to="/" className="brand">
        <img src="/mark.svg" alt="" width="24" height="24" />
        <span>Evenflow</span>
      </Link>
      <button type="button" className="find" onClick={() => setPalette(true)} aria-keyshortcuts="Control+K">
        <Icon name="search" />
        <span>Find</span>
        <kbd>Ctrl K</kbd>
      </button>
      <button type="button" className="menu" aria-expanded={menu} aria-controls="pages foot" onClick={() => setMenu(!menu)}>
        <Icon name={menu ? "close" : "menu"} />
        <span>Menu</span>
      </button>
      <Palette open={palette} setOpen={setPalette} logOut={() => void logOut()} />
      <nav id="pages" aria-label="Pages">
        {places.map((place) => (
          <Link key={place.to} to={place.to} activeOptions={{ exact: place.to === "/" }} activeProps={{ "aria-current": "page" }}>
            <Icon name={place.icon} />
            <span>{place.name}</span>
          </Link>
        ))}
      </nav>
      <div id="foot" className="foot">
        <button type="button" className="bare" onClick={() => choose({ theme: dark ? "light" : "dark" })} title={dark ? "Light" : "Dark"}>
          <Icon name={dark ? "sun" : "moon"} />
          <span>{dark ? "Light" : "Dark"}</span>
        </button>
        <button type="button" className="bare" onClick={() => choose({ zone: zone === "utc" ? "local" : "utc" })} title="The zone that times are shown in">
          <Icon name="clock" />
          <span>{zone === "utc" ? "UTC" : "Local time"}</span>
        </button>
        <button type="button" className="bare" onClick={() => void logOut()} title={`Log out ${name}`}>
          <Icon name="out" />
          <span>Log out</span>
        </button>
        <p className="who" title={name}>
          {name}
        </p>
      </div>
    </header>
  );
}

function Lost() {
  const since = useLostSince();
  if (!since) return null;
  return (
    <p className="lost" role="alert">
      Evenflow does not answer since <Time at={since.toISOString()} as="moment" />. What you see is of then; it goes on by itself.
    </p>
  );
}
