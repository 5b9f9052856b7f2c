"""An original FastAPI program with one of everything the listings have to get right.

It is written as generated programs are, not as this project is, and runs both in an upstream environment (to record
what its MCP server gives) and in ours. It takes no time from outside and answers the same calls with the same bytes.
"""

# ruff: noqa: B008, UP042

import os
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Depends, FastAPI, Header, HTTPException, Path, Query, Response
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from pydantic import BaseModel, EmailStr, Field, field_validator
from sqlalchemy import Column, DateTime, Float, ForeignKey, Integer, String, create_engine
from sqlalchemy.orm import declarative_base, relationship, sessionmaker

DATABASE_PATH = os.getenv("DATABASE_PATH", "sqlite:///greenhouse.db")
engine = create_engine(
    DATABASE_PATH,
    connect_args={"check_same_thread": False},
)
SessionLocal = sessionmaker(bind=engine, autoflush=False)
Base = declarative_base()
app = FastAPI(title="Greenhouse", version="1.2.0", description="Beds, plants and waterings.")
router = APIRouter(prefix="/api/reports", tags=["reports"])


class Bed(Base):
    __tablename__ = "beds"
    id = Column(Integer, primary_key=True)
    name = Column(String, unique=True, nullable=False)
    area = Column(Float, nullable=False, default=1.5)
    note = Column(String)
    plants = relationship("Plant", back_populates="bed")


class Plant(Base):
    __tablename__ = "plants"
    id = Column(Integer, primary_key=True)
    bed_id = Column(Integer, ForeignKey("beds.id"), nullable=False)
    species = Column(String, nullable=False)
    sown_at = Column(DateTime)
    height = Column(Float)
    bed = relationship("Bed", back_populates="plants")


Base.metadata.create_all(engine)


class Stage(str, Enum):
    seed = "seed"
    leaf = "leaf"
    flower = "flower"


class Position(BaseModel):
    row: int = Field(..., ge=1, description="Row from the door", example=2)
    column: int = Field(1, le=40)


class Label(BaseModel):
    text: str = Field(..., min_length=1, max_length=40, examples=["basil"])
    colours: list[str] = Field(default_factory=list, description="Colours, outside first")
    position: Position | None = None


class BedIn(BaseModel):
    name: str = Field(..., description="Name on the sign", example="North")
    area: float = Field(1.5, gt=0)
    note: str | None = Field(None, description="Anything to remember", example="shade after 3 pm")
    labels: list[Label] = []
    contact: EmailStr | None = None
    codes: dict[str, int] | None = None
    kind: Literal["raised", "flat"] = "flat"
    budget: Decimal | None = None
    width: int | float | None = Field(None, description="Metres")

    @field_validator("name")
    @classmethod
    def name_is_not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("name is blank")
        return value


class BedOut(BaseModel):
    id: int
    name: str
    area: float
    note: str | None = None
    labels: list[Label] = []
    stage: Stage = Stage.seed
    opened: date | None = None


class PlantOut(BaseModel):
    id: int = Field(..., description="Plant id", example=3)
    species: str
    height: float | None
    sown_at: datetime | None
    bed: BedOut


class Count(BaseModel):
    count: int
    extra: dict[str, Any] = {}


def bed_or_404(session, bed_id: int) -> Bed:
    bed = session.get(Bed, bed_id)
    if bed is None:
        raise HTTPException(status_code=404, detail=f"Bed {bed_id} not found")
    return bed


@app.post(
    "/api/beds",
    operation_id="create_bed",
    summary="Create a bed",
    tags=["beds"],
    response_model=BedOut,
    status_code=201,
)
async def create_bed(body: BedIn) -> BedOut:
    """Make a bed.

    Names are unique.
    """
    session = SessionLocal()
    bed = Bed(name=body.name, area=body.area, note=body.note)
    session.add(bed)
    session.commit()
    result = BedOut(id=bed.id, name=bed.name, area=bed.area, note=bed.note, labels=body.labels)
    session.close()
    return result


@app.get(
    "/api/beds",
    operation_id="list_beds",
    summary="List beds",
    description="All beds, by id.",
    tags=["beds"],
    response_model=list[BedOut],
)
async def list_beds(
    limit: int = Query(10, ge=1, le=50, description="At most this many", example=5),
    name: str | None = Query(None, description="Part of the name"),
    stages: list[Stage] = Query([], description="Only these stages"),
    tags: list[str] | None = Query(None),
    exact: bool = False,
    since: date | None = None,
    level: Literal["low", "high"] = "low",
    ratio: Annotated[float, Query(lt=1)] = 0.5,
):
    session = SessionLocal()
    query = session.query(Bed).order_by(Bed.id)
    if name:
        query = query.filter(Bed.name == name) if exact else query.filter(Bed.name.contains(name))
    rows = [BedOut(id=bed.id, name=bed.name, area=bed.area, note=bed.note) for bed in query.limit(limit)]
    session.close()
    return rows


@app.get(
    "/api/beds/{bed_id}", operation_id="get_bed", tags=["beds"], response_model=BedOut, response_model_exclude_none=True
)
def get_bed(bed_id: int = Path(..., description="The bed", example=1, ge=1)):
    session = SessionLocal()
    bed = bed_or_404(session, bed_id)
    return BedOut(id=bed.id, name=bed.name, area=bed.area, note=bed.note)


@app.put("/api/beds/{bed_id}/label/{slot}", operation_id="label_bed", response_model=Label)
async def label_bed(bed_id: int, slot: str, label: Label = Body(...), shout: bool = Query(False)):
    return Label(text=label.text.upper() if shout else f"{bed_id}/{slot}: {label.text}", colours=label.colours)


@app.patch("/api/beds/{bed_id}", operation_id="rename_bed", responses={409: {"description": "Name taken"}})
async def rename_bed(bed_id: int, name: str = Body(..., embed=True), reason: str = Body("tidying")):
    session = SessionLocal()
    bed = bed_or_404(session, bed_id)
    bed.name = name
    session.commit()
    return {"id": bed.id, "name": bed.name, "reason": reason}


@app.delete("/api/beds/{bed_id}", operation_id="delete_bed", status_code=204)
async def delete_bed(bed_id: int):
    session = SessionLocal()
    session.delete(bed_or_404(session, bed_id))
    session.commit()


@app.get("/api/text", operation_id="read_text", response_class=PlainTextResponse)
async def read_text(word: str = "hello"):
    return f"{word}, garden\n"


@app.get("/api/page", operation_id="read_page", response_class=HTMLResponse)
async def read_page():
    return "<h1>Beds</h1>"


@app.get("/api/raw", operation_id="read_raw")
async def read_raw(code: int = 200):
    return JSONResponse({"code": code, "ünïcode": "é ☃"}, status_code=code)


@app.get("/api/numbers", operation_id="read_numbers")
async def read_numbers(kind: str = "plain"):
    return {
        "plain": [1, 1.0, 1e16, 1.5e-7, -0.0, 12345678901234567890, True, None, "a\u2028b\t\x7f"],
        "nan": [float("nan")],
        "empty": [{}, [], "", {"a": []}],
        "when": [datetime(2026, 1, 2, 3, 4, 5), date(2026, 1, 2), Decimal("1.50")],
    }[kind]


@app.post("/api/plants", operation_id="sow_plant", response_model=PlantOut)
async def sow_plant(
    bed_id: int = Body(...),
    species: str = Body(..., min_length=2),
    stage: Stage = Body(Stage.seed),
    position: Position = Body(None),
):
    session = SessionLocal()
    plant = Plant(bed_id=bed_id, species=species, height=None, sown_at=datetime(2026, 3, 1, 8, 30))
    session.add(plant)
    session.commit()
    bed = session.get(Bed, bed_id)
    return PlantOut(
        id=plant.id,
        species=plant.species,
        height=plant.height,
        sown_at=plant.sown_at,
        bed=BedOut(id=bed.id, name=bed.name, area=bed.area),
    )


@app.post("/api/plants/{plant_id}/measure", operation_id="measure_plant", response_model=Count)
async def measure_plant(plant_id: int, heights: list[float] = Body(...)):
    return Count(count=len(heights), extra={"sum": sum(heights), "plant": plant_id})


@app.post("/api/broken", operation_id="break_things", response_model=Count)
async def break_things(how: str = Body("raise", embed=True)):
    if how == "raise":
        raise RuntimeError("broken on purpose")
    if how == "shape":
        return {"count": "many"}
    if how == "missing":
        return Count(count=SessionLocal().query(Bed).filter(Bed.id == -1).first().id)
    raise HTTPException(status_code=418, detail={"teapot": True, "how": how})


@app.get("/api/whoami", operation_id="who_am_i")
async def who_am_i(x_gardener: str = Header("nobody")):
    return {"gardener": x_gardener}


def get_session():
    session = SessionLocal()
    try:
        yield session
    finally:
        session.close()


@app.get("/api/depends", operation_id="count_beds", response_model=Count, tags=["beds", "numbers"])
def count_beds(response: Response, session=Depends(get_session), at_least: int = 0):
    response.headers["x-count"] = "yes"
    return Count(count=session.query(Bed).filter(Bed.id >= at_least).count())


@app.api_route("/api/untyped", methods=["POST"], operation_id="untyped")
async def untyped(payload: dict[str, Any] = Body(...)):
    return payload


@app.get("/no-operation-id/{thing}", deprecated=True)
async def without_operation_id(thing: str):
    return {"thing": thing}


@app.get("/api/hidden", operation_id="hidden", include_in_schema=False)
async def hidden():
    return "hidden"


@router.get("/beds/{bed_id}/summary", operation_id="bed_summary", response_model=dict[str, int | str])
async def bed_summary(bed_id: int, verbose: bool | None = None):
    return {"bed": bed_id, "verbose": str(verbose)}


app.include_router(router)

if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app, host="127.0.0.1", port=int(os.getenv("PORT", "8000")))
