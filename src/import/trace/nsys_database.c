/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access to the database. Its schema is not stable: tables and columns are looked up before use,
 * and tables may have a version number in their name. The file is untrusted: SQLite runs with its
 * defensive settings, and only tables are read, never views.
 */
#include "import/trace/nsys_private.h"

#include "base/error.h"
#include "base/files/file_input.h"
#include "base/files/file_uses.h"

#include <stdio.h>

#define VALUE_BYTES_MAX (64 << 20)
#define PROGRESS_OPS 1000000
#define PROGRESS_MAX 200000 /* PROGRESS_OPS each: beyond what the largest file needs */

bool
lh_nsys_fail(const LhNsysReader *r, GError **error)
{
    g_autofree char *why = g_utf8_make_valid(sqlite3_errmsg(r->db), -1);

    g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "%s: error: the database cannot be read: %s",
                r->file.path, why);
    return false;
}

static int
on_progress(void *data)
{
    LhNsysReader *r = data;

    return ++r->progress > PROGRESS_MAX;
}

char *
lh_nsys_find_table(const LhNsysReader *r, const char *name)
{
    static const char sql[] =
        "SELECT name FROM sqlite_master WHERE type = 'table' AND (name = ?1 OR "
        "(name GLOB ?1 || '_V[0-9]*')) ORDER BY name DESC LIMIT 1";
    sqlite3_stmt *statement = NULL;
    char *found = NULL;

    if (sqlite3_prepare_v2(r->db, sql, -1, &statement, NULL) == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
        if (sqlite3_step(statement) == SQLITE_ROW)
            found = g_strdup((const char *)sqlite3_column_text(statement, 0));
    }
    sqlite3_finalize(statement);
    return found;
}

bool
lh_nsys_has_column(const LhNsysReader *r, const char *table, const char *column)
{
    sqlite3_stmt *statement = NULL;
    bool found = false;

    if (sqlite3_prepare_v2(r->db, "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2", -1,
                           &statement, NULL) == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC);
        sqlite3_bind_text(statement, 2, column, -1, SQLITE_STATIC);
        found = sqlite3_step(statement) == SQLITE_ROW;
    }
    sqlite3_finalize(statement);
    return found;
}

/* "SELECT "a", NULL FROM "t""; NULL with @error if a column is missing. Caller frees. */
static char *
make_query(const LhNsysReader *r, const LhNsysTable *table, const char *found, GError **error)
{
    g_autoptr(GString) sql = g_string_new("SELECT ");

    for (guint i = 0; table->columns[i] != NULL; i++) {
        const bool optional = *table->columns[i] == '?';
        const char *column = table->columns[i] + optional;
        const bool there = lh_nsys_has_column(r, found, column);

        if (!there && !optional) {
            g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                        "%s: error: table %s has no column %s; allowed: a database written by nsys "
                        "export --type sqlite",
                        r->file.path, found, column);
            return NULL;
        }
        g_string_append(sql, i > 0 ? ", " : "");
        g_string_append_printf(sql, there ? "\"%s\"" : "NULL", column);
    }
    g_string_append_printf(sql, " FROM \"%s\" ORDER BY rowid", found);
    return g_string_free(g_steal_pointer(&sql), FALSE);
}

bool
lh_nsys_read_table(LhNsysReader *r, const LhNsysTable *table, GError **error)
{
    g_autofree char *found = lh_nsys_find_table(r, table->name);
    g_autofree char *sql = NULL;
    sqlite3_stmt *statement = NULL;
    int status;

    if (found == NULL && !table->needed)
        return true;
    if (found == NULL) {
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "%s: error: no table %s; allowed: a database written by nsys export --type "
                    "sqlite for a run with CUDA",
                    r->file.path, table->name);
        return false;
    }
    sql = make_query(r, table, found, error);
    if (sql == NULL)
        return false;
    if (sqlite3_prepare_v2(r->db, sql, -1, &statement, NULL) != SQLITE_OK)
        return lh_nsys_fail(r, error);
    while ((status = sqlite3_step(statement)) == SQLITE_ROW) {
        r->file.events++;
        table->row(r, statement);
    }
    sqlite3_finalize(statement);
    return status == SQLITE_DONE || lh_nsys_fail(r, error);
}

bool
lh_nsys_int(sqlite3_stmt *row, int column, int64_t *value)
{
    if (sqlite3_column_type(row, column) != SQLITE_INTEGER)
        return false;
    *value = sqlite3_column_int64(row, column);
    return true;
}

bool
lh_nsys_open(LhNsysReader *r, GError **error)
{
    g_autofree char *absolute = g_canonicalize_filename(r->file.path, NULL);
    g_autofree char *plain = g_filename_to_uri(absolute, NULL, NULL);
    g_autofree char *uri = g_strconcat(plain, "?mode=ro&immutable=1", NULL);
    const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
    int status;

    if (!lh_file_uses_take(r->file.path, LH_FILE_USE_READ, NULL, error))
        return false;
    status = sqlite3_open_v2(uri, &r->db, flags, NULL); /* nocheck:read: taken above */
    if (status != SQLITE_OK)
        return lh_nsys_fail(r, error);
    sqlite3_limit(r->db, SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX);
    sqlite3_db_config(r->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(r->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_progress_handler(r->db, PROGRESS_OPS, on_progress, r);
    return true;
}

char *
lh_nsys_checksum(const char *path)
{
    g_autoptr(GChecksum) checksum = g_checksum_new(G_CHECKSUM_SHA256);
    FILE *file = lh_input_open(path, NULL);
    unsigned char bytes[65536];
    size_t got;

    while (file != NULL && (got = fread(bytes, 1, sizeof(bytes), file)) > 0)
        g_checksum_update(checksum, bytes, (gssize)got);
    if (file != NULL)
        fclose(file);
    return g_strdup(g_checksum_get_string(checksum));
}
