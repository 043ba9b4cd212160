/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Available memory: /proc/meminfo, the process's control groups (both versions) and their parents,
 * and setrlimit(2). Memory that only caches files counts as free.
 */
#include "base/available_memory.h"

#include <glib.h>

#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define KIB 1024
#define UNLIMITED (UINT64_C(1) << 60) /* control groups write about 2^63 */

/* The text of a small file, NULL if it cannot be read. Caller frees. */
static char *
read_file(const char *root, const char *path)
{
    g_autofree char *whole = g_strconcat(root, path, NULL);
    char *text = NULL;

    return g_file_get_contents(whole, &text, NULL, NULL) ? text : NULL;
}

/* The number after @key at the start of a line of @text; false if there is none. */
static bool
find_number(const char *text, const char *key, uint64_t *number)
{
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n' ? 1 : 0;
        if (!g_str_has_prefix(line, key))
            continue;
        *number = g_ascii_strtoull(line + strlen(key), NULL, 10);
        return true;
    }
    return false;
}

static bool
read_number(const char *root, const char *folder, const char *file, uint64_t *number)
{
    g_autofree char *path = g_build_filename(folder, file, NULL);
    g_autofree char *text = read_file(root, path);

    return text != NULL && g_ascii_isdigit(*text) && find_number(text, "", number);
}

static void
limit(LhRoom *room, uint64_t most, uint64_t used, const char *what)
{
    const uint64_t left = most > used ? most - used : 0;

    if (left < room->bytes)
        *room = (LhRoom){ left, what };
}

static void
limit_by_machine(LhRoom *room, const char *root)
{
    g_autofree char *text = read_file(root, "/proc/meminfo");
    uint64_t available;

    if (text != NULL && find_number(text, "MemAvailable:", &available))
        limit(room, available * KIB, 0, "what this machine has free");
}

/* File names of one control group version. */
typedef struct {
    const char *folder, *most, *used, *cached;
} GroupFiles;

static const GroupFiles version1 = { "/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                     "memory.usage_in_bytes", "total_inactive_file " };
static const GroupFiles version2 = { "/sys/fs/cgroup", "memory.max", "memory.current",
                                     "inactive_file " };

static void
limit_by_group(LhRoom *room, const char *root, const GroupFiles *files, const char *folder)
{
    g_autofree char *stat_path = g_build_filename(folder, "memory.stat", NULL);
    g_autofree char *stat = NULL;
    uint64_t most, used, cached = 0;

    if (!read_number(root, folder, files->most, &most) || most >= UNLIMITED ||
        !read_number(root, folder, files->used, &used))
        return;
    stat = read_file(root, stat_path);
    if (stat != NULL)
        find_number(stat, files->cached, &cached);
    limit(room, most, used > cached ? used - cached : 0, "the control group");
}

/* Applies the limits of the group @group (as in "/a/b") and its ancestors. */
static void
limit_by_groups(LhRoom *room, const char *root, const GroupFiles *files, const char *group)
{
    g_autofree char *folder = g_build_filename(files->folder, group, NULL);

    while (strlen(folder) >= strlen(files->folder)) {
        char *above = g_path_get_dirname(folder);

        limit_by_group(room, root, files, folder);
        g_free(folder);
        folder = above;
    }
}

/* Lines are "0::/group" or "4:memory:/group" with a list of controllers. */
static void
limit_by_control_groups(LhRoom *room, const char *root)
{
    g_autofree char *text = read_file(root, "/proc/self/cgroup");
    g_auto(GStrv) lines = text == NULL ? NULL : g_strsplit(text, "\n", -1);

    for (guint i = 0; lines != NULL && lines[i] != NULL; i++) {
        g_auto(GStrv) words = g_strsplit(lines[i], ":", 3);
        g_auto(GStrv) controllers = NULL;

        if (g_strv_length(words) != 3)
            continue;
        controllers = g_strsplit(words[1], ",", -1);
        if (*words[1] == '\0')
            limit_by_groups(room, root, &version2, words[2]);
        else if (g_strv_contains((const char *const *)controllers, "memory"))
            limit_by_groups(room, root, &version1, words[2]);
    }
}

/* Column @column of /proc/self/statm, which counts pages. */
static uint64_t
own_bytes(const char *root, unsigned column)
{
    g_autofree char *text = read_file(root, "/proc/self/statm");
    g_auto(GStrv) words = text == NULL ? NULL : g_strsplit(text, " ", -1);

    if (words == NULL || g_strv_length(words) <= column)
        return 0;
    return g_ascii_strtoull(words[column], NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void
limit_by_ulimit(LhRoom *room, const char *root)
{
    struct rlimit most;

    if (getrlimit(RLIMIT_AS, &most) == 0 && most.rlim_cur != RLIM_INFINITY)
        limit(room, most.rlim_cur, own_bytes(root, 0), "ulimit -v");
    if (getrlimit(RLIMIT_DATA, &most) == 0 && most.rlim_cur != RLIM_INFINITY)
        limit(room, most.rlim_cur, own_bytes(root, 5), "ulimit -d");
}

LhAvailableMemory
lh_available_memory(const char *root)
{
    LhAvailableMemory room = { { UINT64_MAX, "nothing" }, { UINT64_MAX, "nothing" } };

    limit_by_machine(&room.memory, root);
    limit_by_control_groups(&room.memory, root);
    limit_by_ulimit(&room.address, root);
    return room;
}
