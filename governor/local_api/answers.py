"""Errors as the local API tells them: one place that maps the tree of errors to HTTP."""

from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from governor.errors import GovernorError, RefusedError


async def error_response(_request: Request, error: Exception) -> JSONResponse:
    """Tell one of our errors: code, message, and for a refusal its reason."""
    if not isinstance(error, GovernorError):
        raise error
    content: dict[str, str | None] = {"error": error.code, "message": error.message}
    if isinstance(error, RefusedError):
        content["reason"] = error.reason
        content["retry_at"] = error.retry_at.isoformat() if error.retry_at else None
    return JSONResponse(content, error.status)


async def _invalid(_request: Request, error: Exception) -> JSONResponse:
    """Name the field at fault; never repeat what was sent."""
    problems = error.errors() if isinstance(error, RequestValidationError) else []
    where = ".".join(str(part) for part in problems[0]["loc"][1:]) if problems else "body"
    what = problems[0]["msg"] if problems else "invalid"
    return JSONResponse({"error": "bad_request", "message": f"{where or 'body'}: {what}."}, 422)


_TOLD: dict[int, tuple[str, str]] = {
    HTTPStatus.NOT_FOUND: ("not_found", "No such route."),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: ("too_large", "The request is too long; send the text in parts."),
}


async def _http(_request: Request, error: Exception) -> JSONResponse:
    status = error.status_code if isinstance(error, HTTPException) else HTTPStatus.INTERNAL_SERVER_ERROR
    code, message = _TOLD.get(status, ("bad_request", "The request makes no sense here."))
    return JSONResponse({"error": code, "message": message}, status)


def install(app: FastAPI) -> None:
    """Let every error of this app be told in the one form."""
    app.add_exception_handler(GovernorError, error_response)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
