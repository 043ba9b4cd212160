/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree that the library cJSON builds of a text, and what cJSON lacks: the position of each
 * value (stored in `valueint`, the one member of a value that cJSON no longer uses; a text is far
 * below 2 GiB), and a check for duplicate keys. Numbers are read from the text at their position,
 * exactly and in every locale: cJSON stores doubles.
 */
#include "base/json/json_private.h"

#include <limits.h>
#include <string.h>

#define BLOCK_BYTES_MIN 2048
#define BLOCK_BYTES_MAX (1 << 20)

G_STATIC_ASSERT(LH_JSON_BYTES_MAX < INT_MAX);

/* --- memory ---
 *
 * Values are many and small, and are freed together: they are allocated in blocks, which takes 30 %
 * less memory than one allocation each. */

/* The tree that cJSON is building in this thread; NULL otherwise. */
static _Thread_local LhJsonTree *tree_being_read;

static void *
allocate(size_t bytes)
{
    LhJsonTree *tree = tree_being_read;
    const gsize taken = (bytes + sizeof(double) - 1) / sizeof(double) * sizeof(double);

    if (tree == NULL)
        return g_malloc(bytes);
    if (taken > tree->left) {
        const gsize all = (gsize)BLOCK_BYTES_MIN << MIN(tree->blocks->len, 9);

        tree->left = MAX(taken, MIN(all, BLOCK_BYTES_MAX));
        tree->unused = g_malloc(tree->left);
        g_ptr_array_add(tree->blocks, tree->unused);
    }
    tree->last = tree->unused;
    tree->unused += taken;
    tree->left -= taken;
    return tree->last;
}

/* A tree is freed as a whole, except for the last allocation: newer versions of cJSON copy the text
 * of each number temporarily. */
static void
deallocate(void *memory)
{
    LhJsonTree *tree = tree_being_read;

    if (tree == NULL) {
        g_free(memory);
    } else if (memory == tree->last) {
        tree->left += (gsize)(tree->unused - tree->last);
        tree->unused = tree->last;
    }
}

/* g_malloc aborts when out of memory, so cJSON never fails for lack of it. */
static void
use_our_memory(void)
{
    static gsize done;
    cJSON_Hooks hooks = { .malloc_fn = allocate, .free_fn = deallocate };

    if (!g_once_init_enter(&done))
        return;
    cJSON_InitHooks(&hooks);
    g_once_init_leave(&done, 1);
}

/* --- scanned text --- */

static bool
is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

gsize
lh_json_skip_space(const char *text, gsize at)
{
    while (is_space(text[at]))
        at++;
    return at;
}

/* The position after the closing quote of the string at @at. */
static gsize
end_of_string(const char *text, gsize at)
{
    for (at++; text[at] != '"'; at++)
        at += text[at] == '\\' ? 1 : 0;
    return at + 1;
}

/* Skips a number, true, false or null, or a space or comma within a container. */
static gsize
end_of_word(const char *text, gsize at)
{
    do
        at++;
    while (!is_space(text[at]) && strchr(",:\"{}[]", text[at]) == NULL);
    return at;
}

gsize
lh_json_end(const char *text, gsize at)
{
    unsigned depth = 0;

    do {
        const char c = text[at];

        if (c == '{' || c == '[')
            depth++;
        if (c == '}' || c == ']')
            depth--;
        at = c == '"' ? end_of_string(text, at) : end_of_word(text, at);
    } while (depth > 0);
    return at;
}

/* --- positions --- */

gsize
lh_json_place(const cJSON *value)
{
    return (gsize)value->valueint;
}

/* A quote within a string has a backslash before it; the opening quote has none. */
gsize
lh_json_key_place(const char *text, const cJSON *value)
{
    gsize at = lh_json_place(value);

    while (text[at] != ':')
        at--;
    while (text[at] != '"')
        at--;
    do
        at--;
    while (text[at] != '"' || text[at - 1] == '\\');
    return at;
}

/* Records the position of each value of a tree; @value is at @at, or after white space and a comma
 * there. Returns the position after it. The scan bounds the depth. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static gsize
note_places(cJSON *value, const char *text, gsize at)
{
    at = lh_json_skip_space(text, at);
    if (text[at] == ',')
        at = lh_json_skip_space(text, at + 1);
    if (value->string != NULL)
        at = lh_json_skip_space(text, lh_json_skip_space(text, end_of_string(text, at)) + 1);
    value->valueint = (int)at;
    if (value->child == NULL)
        return lh_json_end(text, at);
    at++;
    for (cJSON *child = value->child; child != NULL; child = child->next)
        at = note_places(child, text, at);
    return lh_json_skip_space(text, at) + 1;
}

/* --- keys --- */

/* Checks objects in the order in which they end. Uses no hash table: a file can be crafted so that
 * all its keys collide. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static const cJSON *
find_second_key(const cJSON *value)
{
    g_autoptr(GTree) seen = NULL;
    const cJSON *found = NULL;

    for (const cJSON *child = value->child; found == NULL && child != NULL; child = child->next)
        found = child->child != NULL ? find_second_key(child) : NULL;
    if (!cJSON_IsObject(value) || found != NULL)
        return found;
    seen = g_tree_new((GCompareFunc)strcmp);
    for (cJSON *member = value->child; member != NULL; member = member->next) {
        if (g_tree_lookup(seen, member->string) != NULL)
            return member;
        g_tree_insert(seen, member->string, member);
    }
    return NULL;
}

bool
lh_json_check_keys(const LhJson *json, GError **error)
{
    const cJSON *second = find_second_key(lh_json_root(json));
    g_autofree char *escaped = second != NULL ? g_strescape(second->string, NULL) : NULL;

    if (second == NULL)
        return true;
    return lh_json_fail_at(json->name, json->text, lh_json_key_place(json->text, second), error,
                           "the key \"%.60s\" appears here for the second time", escaped);
}

/* --- reading --- */

/* The text with numbers in place of NaN and Infinity, which cJSON does not support; their values
 * are read from the original text. Caller frees. */
static char *
replace_python_numbers(const LhJson *json)
{
    char *text = g_memdup2(json->text, json->length + 1);

    for (gsize at = 0; text[at] != '\0';) {
        const gsize end = text[at] == '"' ? end_of_string(text, at) : at + 1;

        if (text[at] == 'N' || text[at] == 'I') {
            text[at] = '0';
            for (gsize letter = end; g_ascii_isalpha(text[letter]); letter++)
                text[letter] = ' ';
        }
        at = end;
    }
    return text;
}

gsize
lh_json_tree_read(const LhJson *json, gsize at, LhJsonTree *tree)
{
    g_autofree char *replaced = json->python ? replace_python_numbers(json) : NULL;
    const char *text = replaced != NULL ? replaced : json->text;

    use_our_memory();
    tree->blocks = g_ptr_array_new_with_free_func(g_free);
    tree_being_read = tree;
    tree->root = cJSON_ParseWithLengthOpts(text + at, json->length - at, NULL, false);
    tree_being_read = NULL;
    g_assert(tree->root != NULL);
    return note_places(tree->root, json->text, at);
}

void
lh_json_tree_clear(LhJsonTree *tree)
{
    g_clear_pointer(&tree->blocks, g_ptr_array_unref);
    *tree = (LhJsonTree){ NULL };
}

const cJSON *
lh_json_root(const LhJson *json)
{
    if (json->tree->root == NULL)
        lh_json_tree_read(json, lh_json_skip_space(json->text, 0), json->tree);
    return json->tree->root;
}

void
lh_json_forget(const LhJson *json)
{
    lh_json_tree_clear(json->tree);
}
