import { expect, it } from "vitest";
import { browserName } from "./browsers";

it("names a browser and its system", () => {
  expect(browserName("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36")).toBe("Chrome on Linux");
  expect(browserName("Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Mobile/15E148 Safari/604.1")).toBe("Safari on iOS");
  expect(browserName("Mozilla/5.0 (Windows NT 10.0; rv:140.0) Gecko/20100101 Firefox/140.0")).toBe("Firefox on Windows");
});

it("leaves what it does not know as it is", () => {
  expect(browserName("curl/8")).toBe("curl/8");
  expect(browserName(null)).toBe("an unknown browser");
});
