/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/sweep_file.h"

#include "base/error.h"
#include "base/files/append_log.h"
#include "base/json/json.h"
#include "base/json/json_encode.h"
#include "config.h"

#include <stddef.h>
#include <string.h>

/* A row of a line. */
typedef struct {
    GPtrArray *cells; /* of char * */
} Row;

typedef struct {
    uint64_t point;
    GArray *rows; /* of Row */
} Line;

static const LhField row_fields[] = {
    { .name = "cells",
      .type = LH_FIELD_STRINGS,
      .offset = offsetof(Row, cells),
      .flags = LH_FIELD_REQUIRED },
    { .name = NULL },
};

static const LhField line_fields[] = {
    { .name = "point",
      .type = LH_FIELD_UINT,
      .offset = offsetof(Line, point),
      .flags = LH_FIELD_REQUIRED },
    { .name = "rows",
      .type = LH_FIELD_ARRAY,
      .offset = offsetof(Line, rows),
      .flags = LH_FIELD_REQUIRED,
      .min = 1,
      .max = -1,
      .fields = row_fields,
      .element_size = sizeof(Row) },
    { .name = NULL },
};

/* Copies the row's cells, if their number matches the columns. Caller frees. */
static char **
cells_of(const Row *row, guint columns)
{
    g_autoptr(GStrvBuilder) cells = g_strv_builder_new();

    if (row->cells->len != columns)
        return NULL;
    for (guint i = 0; i < columns; i++)
        g_strv_builder_add(cells, g_ptr_array_index(row->cells, i));
    return g_strv_builder_end(cells);
}

/* Takes the point of a line, if it is the next one this sweep would write. */
static bool
take_line(LhSweepRun *run, const Line *line)
{
    g_autoptr(GPtrArray) rows = lh_sweep_new_rows();
    const guint columns = g_strv_length(run->sweep->columns);

    if (run->first == run->mine->len || line->point != lh_sweep_mine_at(run, run->first))
        return false;
    for (guint i = 0; i < line->rows->len; i++) {
        char **cells = cells_of(&g_array_index(line->rows, Row, i), columns);

        if (cells == NULL)
            return false;
        g_ptr_array_add(rows, cells);
    }
    lh_sweep_point(run->sweep, lh_sweep_mine_at(run, run->first++))->rows = g_steal_pointer(&rows);
    return true;
}

static bool
read_sweep_line(LhSweepRun *run, const char *path, const char *text, guint number, GError **error)
{
    g_autoptr(LhJson) json = lh_json_parse(path, text, strlen(text), NULL);
    Line line = { 0 };
    const bool read = json != NULL && lh_json_decode(json, line_fields, &line, false, NULL);
    const bool taken = read && take_line(run, &line);

    if (read)
        lh_json_clear(line_fields, &line);
    if (!taken)
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "%s: line %u was not written by this sweep, so the file cannot be resumed; "
                    "remove it, or give another name",
                    path, number);
    return taken;
}

/* The first line of a file, which identifies the sweep and, for shards, the shard. */
typedef struct {
    const char *schema, *version, *query_sha256;
    uint64_t shard, shards; /* 0: of the whole sweep */
} FirstLine;

static const LhField first_fields[] = {
    LH_FIELD_ROW(STRING, FirstLine, schema, "schema", ALWAYS, .description = NULL),
    LH_FIELD_ROW(STRING, FirstLine, version, "version", ALWAYS, .description = NULL),
    LH_FIELD_ROW(STRING, FirstLine, query_sha256, "query_sha256", ALWAYS, .description = NULL),
    LH_FIELD_ROW(UINT, FirstLine, shard, "shard", IF_ANY, .description = NULL),
    LH_FIELD_ROW(UINT, FirstLine, shards, "shards", IF_ANY, .description = NULL),
    { .name = NULL },
};

static char *
first_line(const LhSweepRun *run, guint shard)
{
    const FirstLine line = { LH_SWEEP_LINES_SCHEMA, LH_VERSION, run->sweep->query_sha256, shard,
                             shard > 0 ? run->query->shards : 0 };

    return lh_json_encode_line(first_fields, &line);
}

static void
clear_row(gpointer row)
{
    g_ptr_array_unref(((Row *)row)->cells);
}

static char *
point_line(const LhSweepRun *run, guint index)
{
    const GPtrArray *rows = lh_sweep_point(run->sweep, index)->rows;
    g_autoptr(GArray) written = g_array_new(FALSE, FALSE, sizeof(Row));
    const Line line = { index, written };

    g_array_set_clear_func(written, clear_row);
    for (guint i = 0; i < rows->len; i++) {
        const Row row = { g_ptr_array_new() };

        for (char **cell = g_ptr_array_index(rows, i); *cell != NULL; cell++)
            g_ptr_array_add(row.cells, *cell);
        g_array_append_val(written, row);
    }
    return lh_json_encode_line(line_fields, &line);
}

static bool
read_lines(LhSweepRun *run, const char *path, const GPtrArray *lines, GError **error)
{
    for (guint i = 0; i < lines->len; i++) {
        if (!read_sweep_line(run, path, g_ptr_array_index(lines, i), i + 2, error))
            return false;
    }
    return true;
}

/* Reads the points of a file and leaves it open for appending. @shard: from 1, or 0 for the file of
 * the whole sweep. */
static bool
open_file(LhSweepRun *run, const char *path, guint shard, GError **error)
{
    g_autofree char *first = first_line(run, shard);
    g_autoptr(GPtrArray) lines = NULL;

    run->first = 0;
    run->journal = lh_append_log_open(path, first, &lines, error);
    if (run->journal == NULL || !read_lines(run, path, lines, error))
        return false;
    run->written = run->first;
    return true;
}

/* Selects the points of a shard, from 1, or all (0). */
static void
choose_mine(LhSweepRun *run, guint shard)
{
    const guint step = shard > 0 ? run->query->shards : 1;

    g_array_set_size(run->mine, 0);
    for (guint i = shard > 0 ? shard - 1 : 0; i < run->sweep->points->len; i += step)
        g_array_append_val(run->mine, i);
}

/* Adds a sentence about results missing in a shard's file. */
static void
note_lost(LhSweepRun *run, guint shard, const char *path, bool found)
{
    g_autofree char *name = g_path_get_basename(path);

    if (run->first == run->mine->len)
        return;
    g_ptr_array_add(
        run->sweep->lost,
        found ? g_strdup_printf("shard %u of %u did not finish: %s has %u of its %u points; the "
                                "others are run now",
                                shard, run->query->shards, name, run->first, run->mine->len)
              : g_strdup_printf(
                    "shard %u of %u is missing: there is no %s; its %u points are run now", shard,
                    run->query->shards, name, run->mine->len));
}

/* Reads the points of a shard's file. */
static bool
take_shard(LhSweepRun *run, guint shard, GError **error)
{
    g_autofree char *path = lh_sweep_shard_file(run->query->points_file, shard, run->query->shards);
    const bool found = g_file_test(path, G_FILE_TEST_EXISTS);
    bool ok = true;

    choose_mine(run, shard);
    run->first = 0;
    if (found)
        ok = open_file(run, path, shard, error);
    lh_append_log_free(g_steal_pointer(&run->journal));
    if (ok)
        note_lost(run, shard, path, found);
    return ok;
}

bool
lh_sweep_open_files(LhSweepRun *run, GError **error)
{
    const LhSweepQuery *q = run->query;
    g_autofree char *path = q->shard > 0 ? lh_sweep_shard_file(q->points_file, q->shard, q->shards)
                                         : g_strdup(q->points_file);

    for (guint shard = 1; q->shard == 0 && shard <= q->shards; shard++) {
        if (!take_shard(run, shard, error))
            return false;
    }
    choose_mine(run, q->shard);
    run->sweep->in_shard = run->mine->len;
    run->first = 0;
    if (path != NULL && !open_file(run, path, q->shard, error))
        return false;
    for (guint i = 0; i < run->mine->len; i++)
        run->done += lh_sweep_point(run->sweep, lh_sweep_mine_at(run, i))->rows != NULL;
    return true;
}

char *
lh_sweep_shard_file(const char *points_file, guint shard, guint shards)
{
    return g_strdup_printf("%s.%u-of-%u", points_file, shard, shards);
}

void
lh_sweep_write_done(LhSweepRun *run)
{
    while (run->journal != NULL && run->written < run->mine->len &&
           lh_sweep_point(run->sweep, lh_sweep_mine_at(run, run->written))->rows != NULL) {
        g_autofree char *line = point_line(run, lh_sweep_mine_at(run, run->written++));

        lh_append_log_append(run->journal, line);
    }
}
