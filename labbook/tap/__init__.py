"""A proxy that shows what an application really sends: every byte passes unchanged, and one line tells what it shared.

application ── relay ──> upstream      the bytes of both directions, as they arrive
                 │
              exchange                 what was sent and answered, when, and how it ended
                 │
              reporter ── history      the longest prefix shared with an earlier prompt
                 ├──> private file     bodies and times, readable by its owner only
                 └──> one line         for a person

`labbook.tap.server.Tap` is the proxy for a program or a notebook; `labbook tap` runs it for a person.
"""
