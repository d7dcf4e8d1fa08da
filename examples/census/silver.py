"""Silver: modules, each once, and which of them imports which."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def build_graph(spark: SparkSession, lake: Path) -> dict[str, int]:
    """Writes ``silver/modules``, ``silver/edges``, ``silver/unresolved`` and ``silver/errors``, and counts their rows."""
    files = spark.read.parquet(str(lake / "bronze" / "files")).cache()
    modules = modules_of(spark, files).cache()
    statements = resolved(imports_of(files, modules), modules).cache()
    tables = {
        "modules": modules,
        "edges": edges_of(statements),
        "unresolved": unresolved_of(statements),
        "errors": files.where("status in ('error', 'skipped')").select("path", "kind", "package", "status", "reason", "error_line"),
    }
    counts = {}
    for name, table in tables.items():
        target = str(lake / "silver" / name)
        table.coalesce(1).write.mode("overwrite").parquet(target)
        counts[name] = spark.read.parquet(target).count()
    return counts


def modules_of(spark: SparkSession, files: DataFrame) -> DataFrame:
    """A row a module name: the file that an import would find, and the modules that are built into Python or its library."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    # As the import system has it: the first root wins, a package over a module, compiled code over source.
    first = Window.partitionBy("module").orderBy("order", F.desc("is_package"), "form", "path")
    found = (
        files.where("module is not null and status != 'error'")
        .withColumn("place", F.row_number().over(first))
        .where("place = 1")
        .select("module", "package", "kind", "form", "path", "bytes", "lines", "functions", "classes", "docstring")
    )
    names = spark.createDataFrame([(name,) for name in sorted(sys.stdlib_module_names)], "module string")
    built_in = names.join(found, "module", "left_anti").select(
        "module", F.col("module").alias("package"), F.lit("stdlib").alias("kind"), F.lit("compiled").alias("form")
    )
    return found.unionByName(built_in, allowMissingColumns=True)


def imports_of(files: DataFrame, modules: DataFrame) -> DataFrame:
    """A row an import statement's target: ``source``, ``target``, ``when``. Files that another one shadows are left out."""
    from pyspark.sql import functions as F

    return (
        files.where("status = 'ok'")
        .join(modules.select("path"), "path", "left_semi")
        .select(F.col("module").alias("source"), F.explode("imports").alias("statement"))
        .select("source", "statement.target", "statement.when")
        .groupBy("source", "target", "when")
        .count()
    )


def resolved(statements: DataFrame, modules: DataFrame) -> DataFrame:
    """``statements`` with ``found``: the longest prefix of the target that is a module; null when there is none.

    ``from a.b import c`` has the target ``a.b.c``. It means the module ``a.b.c`` if there is one, else something inside ``a.b``.
    """
    from pyspark.sql import functions as F

    parts = F.split("target", r"\.")
    prefixes = F.transform(F.sequence(F.lit(1), F.size(parts)), lambda n: F.array_join(F.slice(parts, 1, n), "."))
    known = modules.select(F.col("module").alias("prefix"))
    longest = (
        statements.select("target")
        .distinct()
        .select("target", F.explode(prefixes).alias("prefix"))
        .join(known, "prefix")
        .groupBy("target")
        .agg(F.max_by("prefix", F.length("prefix")).alias("found"))
    )
    return statements.join(longest, "target", "left")


def edges_of(statements: DataFrame) -> DataFrame:
    """A row a pair of modules: ``on_import`` unless every import of the target is lazy or for type checkers."""
    from pyspark.sql import functions as F

    return (
        statements.where("found is not null and found != source")
        .groupBy("source", F.col("found").alias("target"))
        .agg(
            F.sum("count").alias("statements"),
            F.max(F.col("when") == "import").alias("on_import"),
            F.min(F.col("when") == "typing").alias("only_typing"),
        )
    )


def unresolved_of(statements: DataFrame) -> DataFrame:
    """Names that no module here answers to, optional dependencies for the most part, and how many modules ask for them."""
    from pyspark.sql import functions as F

    name = F.when(F.col("target").startswith("."), F.lit("(relative)")).otherwise(F.substring_index("target", ".", 1))
    return (
        statements.where("found is null")
        .groupBy(name.alias("name"))
        .agg(F.countDistinct("source").alias("modules"), F.sum("count").alias("statements"))
    )
