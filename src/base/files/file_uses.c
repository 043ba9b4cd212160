/* SPDX-License-Identifier: Apache-2.0 */
#include "base/files/file_uses.h"

#include "base/error.h"
#include "base/escape.h"
#include "base/files/real_path.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#define STDOUT_PATH "/dev/stdout" /* not shown in messages */

const char *const lh_file_use_names[] = { [LH_FILE_USE_READ] = "read",
                                          [LH_FILE_USE_WRITTEN] = "written",
                                          [LH_FILE_USE_UPDATED] = "updated" };

typedef struct {
    LhFileUse use;
    char *word; /* the option that named it; NULL: none */
    char *name; /* its name in messages without an option; NULL: none */
    char *path; /* as given */
} Used;

/* Keys of a path; either may be NULL. */
typedef struct {
    char *file;  /* device, inode and birth time */
    char *place; /* device and inode of the folder, and the name in it */
} Keys;

static void
keys_clear(Keys *keys)
{
    g_free(keys->file);
    g_free(keys->place);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Keys, keys_clear)

G_LOCK_DEFINE_STATIC(uses);
static GPtrArray *all;      /* of Used *, owned; NULL: none */
static GHashTable *by_keys; /* of Used *, by both keys */

/* --- keys ---------------------------------------------------------------------------------------
 */

static char *
file_key(const struct stat *info, const char *name)
{
    return g_strdup_printf("%" PRIx64 ":%" PRIx64 "%s%s", (uint64_t)info->st_dev,
                           (uint64_t)info->st_ino, name != NULL ? "/" : "",
                           name != NULL ? name : "");
}

/* The key of @folder, if it exists. Caller frees. */
static char *
folder_key(const char *folder, const char *name)
{
    struct stat info;

    return stat(folder, &info) == 0 ? file_key(&info, name) : NULL;
}

/* Includes the birth time, where the file system has it: a deleted file's inode may be reused.
 * Caller frees. */
static char *
inode_key(const char *path, const struct stat *info)
{
    struct statx more;
    g_autofree char *made = NULL;

    if (statx(AT_FDCWD, path, 0, STATX_BTIME, &more) == 0 && (more.stx_mask & STATX_BTIME) != 0)
        made = g_strdup_printf("made %" PRIi64 ".%u", (int64_t)more.stx_btime.tv_sec,
                               more.stx_btime.tv_nsec);
    return file_key(info, made);
}

/* False if uses do not apply to @path. Folders have a key of their own. */
static bool
find_keys(const char *path, Keys *keys)
{
    g_auto(LhRealPath) place = { .path = NULL };
    g_autofree char *folder = NULL;
    g_autofree char *name = NULL;

    if (!lh_real_path_find(&place, path))
        return false;
    if (lh_real_path_is_special(&place)) {
        keys->file = S_ISDIR(place.info.st_mode) ? file_key(&place.info, NULL) : NULL;
        return keys->file != NULL;
    }
    folder = g_path_get_dirname(place.path);
    name = g_path_get_basename(place.path);
    keys->file = place.exists ? inode_key(path, &place.info) : NULL;
    keys->place = folder_key(folder, name);
    return keys->file != NULL || keys->place != NULL;
}

/* --- the list -----------------------------------------------------------------------------------
 */

static void
used_free(gpointer data)
{
    Used *used = data;

    g_free(used->word);
    g_free(used->name);
    g_free(used->path);
    g_free(used);
}

static Used *
lookup(const char *key)
{
    return key == NULL || by_keys == NULL ? NULL : g_hash_table_lookup(by_keys, key);
}

/* The file's key takes precedence over its name's: if both exist, a file was moved. */
static Used *
find_used(const Keys *keys)
{
    Used *used = lookup(keys->file);

    return used != NULL && used->use != LH_FILE_USE_NONE ? used
           : lookup(keys->place) != NULL                 ? lookup(keys->place)
                                                         : used;
}

static Used *
add_used(const char *path)
{
    Used *used = g_new0(Used, 1);

    if (all == NULL) {
        all = g_ptr_array_new_with_free_func(used_free);
        by_keys = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    }
    used->path = g_strdup(path);
    g_ptr_array_add(all, used);
    return used;
}

/* The entry of @path; takes over @keys. */
static Used *
enter(const char *path, Keys *keys)
{
    Used *used = find_used(keys);

    if (used == NULL)
        used = add_used(path);
    if (keys->file != NULL)
        g_hash_table_replace(by_keys, g_steal_pointer(&keys->file), used);
    if (keys->place != NULL)
        g_hash_table_replace(by_keys, g_steal_pointer(&keys->place), used);
    return used;
}

/* The word of the folder that contains @path, or NULL. */
static const char *
folder_word(const char *path)
{
    g_autofree char *folder = g_path_get_dirname(path);
    g_autofree char *key = folder_key(folder, NULL);
    const Used *used = lookup(key);

    return used != NULL ? used->word : NULL;
}

/* --- messages -----------------------------------------------------------------------------------
 */

/* Describes the file that would be overwritten; omits its path if that is @other. Caller frees. */
static char *
describe_victim(const Used *victim, const char *other)
{
    const char *word = victim->word != NULL   ? victim->word
                       : victim->name != NULL ? victim->name
                                              : folder_word(victim->path);
    g_autofree char *shown = lh_escaped_line(victim->path);
    const bool named = strcmp(victim->path, other) == 0 || strcmp(victim->path, STDOUT_PATH) == 0;

    return g_strdup_printf("%s%s%s%s%s",
                           word != NULL && g_str_has_prefix(word, "--") ? "the file of " : "",
                           word != NULL ? word : "a file that is read", named ? "" : " (",
                           named ? "" : shown, named ? "" : ")");
}

static bool
fail_overwrite(const Used *writer, const Used *victim, GError **error)
{
    g_autofree char *shown = lh_escaped_line(writer->path);
    g_autofree char *what = describe_victim(victim, writer->path);

    if (strcmp(writer->path, STDOUT_PATH) == 0)
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "standard output would overwrite %s; send it elsewhere", what);
    else
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "%s %s would overwrite %s; give it another name",
                    writer->word != NULL ? writer->word : "the output", shown, what);
    return false;
}

/* --- the interface ------------------------------------------------------------------------------
 */

/* Whether a file with use @has may also have @wanted. */
static bool
agrees(LhFileUse has, LhFileUse wanted, const char *word)
{
    return has == LH_FILE_USE_NONE || (has == wanted && (has == LH_FILE_USE_READ || word == NULL));
}

static bool
take_used(const char *path, LhFileUse use, const char *word, GError **error)
{
    g_auto(Keys) keys = { NULL };
    Used *used;

    if (!find_keys(path, &keys))
        return true;
    used = find_used(&keys);
    if (used != NULL && !agrees(used->use, use, word)) {
        const Used taken = { use, (char *)word, used->name, (char *)path };

        return use == LH_FILE_USE_READ ? fail_overwrite(used, &taken, error)
                                       : fail_overwrite(&taken, used, error);
    }
    used = enter(path, &keys);
    used->use = use;
    if (used->word == NULL)
        used->word = g_strdup(word);
    return true;
}

bool
lh_file_uses_take(const char *path, LhFileUse use, const char *word, GError **error)
{
    bool ok;

    G_LOCK(uses);
    ok = take_used(path, use, word, error);
    G_UNLOCK(uses);
    return ok;
}

void
lh_file_uses_name(const char *path, const char *name)
{
    g_auto(Keys) keys = { NULL };

    G_LOCK(uses);
    if (find_keys(path, &keys)) {
        Used *used = enter(path, &keys);

        if (used->name == NULL)
            used->name = g_strdup(name);
    }
    G_UNLOCK(uses);
}

bool
lh_file_uses_check_write(const char *path, GError **error)
{
    g_auto(Keys) keys = { NULL };
    bool ok = true;

    G_LOCK(uses);
    if (find_keys(path, &keys)) {
        const Used *used = find_used(&keys);
        const Used taken = { LH_FILE_USE_WRITTEN, NULL, NULL, (char *)path };

        ok = used == NULL || agrees(used->use, LH_FILE_USE_WRITTEN, NULL) ||
             fail_overwrite(&taken, used, error);
    }
    G_UNLOCK(uses);
    return ok;
}

void
lh_file_uses_forget_outputs(void)
{
    G_LOCK(uses);
    for (guint i = 0; all != NULL && i < all->len; i++) {
        Used *used = g_ptr_array_index(all, i);

        if (used->use == LH_FILE_USE_READ || used->use == LH_FILE_USE_NONE)
            continue;
        used->use = LH_FILE_USE_NONE;
        g_clear_pointer(&used->word, g_free);
    }
    G_UNLOCK(uses);
}

void
lh_file_uses_clear(void)
{
    G_LOCK(uses);
    g_clear_pointer(&by_keys, g_hash_table_unref);
    g_clear_pointer(&all, g_ptr_array_unref);
    G_UNLOCK(uses);
}
