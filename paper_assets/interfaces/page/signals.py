"""Keep reading signals from the page: papers opened, cited or put on the shelf.

`signals.js` watches links to papers, and buttons with `data-citation`. A button of a form can send a signal too: hidden
fields `token`, `paper`, `kind` (`abstract`, `full text`, `citation`, `shelf`) and `back`; with `undo` it is withdrawn.
"""

from starlette.requests import Request
from starlette.responses import Response

from paper_assets.interfaces.page.desk import desk_of, now, profile_of, redirect_with_note
from paper_assets.learning.ratings import note_signal, withdraw_signal


def keep_signal(request: Request) -> Response:
    """Keep or withdraw a signal; a form is answered by its page, the script by nothing."""
    desk, profile, form = desk_of(request), profile_of(request), request.state.form
    paper_id, kind, back = (str(form.get(name, "")) for name in ("paper", "kind", "back"))
    folder = desk.settings.profiles_dir
    if form.get("undo"):
        withdraw_signal(desk.for_writing, profile, paper_id, kind, profiles_dir=folder)
        note = "Removed."
    elif note_signal(desk.for_writing, profile, paper_id, kind, now=now(), profiles_dir=folder):
        note = "Kept on this machine; your list learns from it tomorrow."
    else:
        note = "Not kept: learning from what you read is switched off in the profile."
    if not back:
        return Response(status_code=204)
    target = back if back.startswith(f"/p/{profile}/") or back == f"/p/{profile}" else f"/p/{profile}"
    return redirect_with_note(request, f"{target}#paper-{paper_id}", note)
