/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads Slurm's topology.conf, or the output of scontrol show topology: a tree of switches.
 * Switches with nodes are leaves; all above them are one spine. Left out: LinkSpeed, which has no
 * unit, and blocks and rings, which are not trees.
 */
#include "base/error.h"
#include "import/cluster/readers_private.h"

#include <string.h>

#define NODES_MAX 65536 /* in host lists, and likewise switches */
#define DIGITS_MAX 9    /* per number in a host list */

typedef struct {
    char *name;
    guint line;
} Child;

typedef struct {
    GHashTable *switches; /* by name */
    GHashTable *nodes;    /* by name, on a leaf */
    GArray *children;     /* of Child: switches below others */
    guint leaves;
    guint nodes_per_leaf; /* largest number */
    guint line;           /* of the first switch */
} Tree;

/* --- host lists ---------------------------------------------------------------------------------
 */

typedef struct {
    LhToolReader *r;
    LhToolWord list; /* the whole list, for messages */
    GPtrArray *names;
} Hosts;

static bool
fail_list(const Hosts *h, const char *what)
{
    g_autofree char *text = lh_tool_text(h->list);

    return lh_text_fail(&h->r->text, h->list.at, "\"%s\" is not a list of hosts: %s", text, what);
}

static bool expand(Hosts *h, const char *prefix, const char *at, const char *end);

/* Adds the names with one number of a bracket. */
static bool
expand_number(Hosts *h, const char *prefix, uint64_t number, int width, const char *rest,
              const char *end)
{
    g_autofree char *name = g_strdup_printf("%s%0*" G_GUINT64_FORMAT, prefix, width, number);

    return expand(h, name, rest, end);
}

/* Parses "12" or "08-11", from @at to @end. */
static bool
read_number_range(const char *at, const char *end, uint64_t *first, uint64_t *last, int *width)
{
    const char *dash = memchr(at, '-', (gsize)(end - at));
    const LhToolWord one = { at, (gsize)((dash != NULL ? dash : end) - at) };
    const LhToolWord two = { dash != NULL ? dash + 1 : at,
                             dash != NULL ? (gsize)(end - dash - 1) : one.length };

    *width = (int)one.length;
    return one.length <= DIGITS_MAX && two.length <= DIGITS_MAX && lh_tool_uint(one, first) &&
           lh_tool_uint(two, last) && *first <= *last;
}

/* Expands a bracket "[0-3,12]" at @at. */
static bool
expand_bracket(Hosts *h, const char *prefix, const char *at, const char *end)
{
    const char *close = memchr(at, ']', (gsize)(end - at));

    if (close == NULL)
        return fail_list(h, "a bracket is not closed; was it cut (SLURM_TOPO_LEN)?");
    for (at++; at <= close; at++) {
        const char *comma = memchr(at, ',', (gsize)(close - at));
        const char *stop = comma != NULL ? comma : close;
        uint64_t first, last;
        int width;

        if (!read_number_range(at, stop, &first, &last, &width))
            return fail_list(h, "brackets contain numbers and ranges, such as [0-3,12]");
        for (uint64_t number = first; number <= last; number++) {
            if (!expand_number(h, prefix, number, width, close + 1, end))
                return false;
        }
        at = stop;
    }
    return true;
}

/* Adds all names of one list element that begin with @prefix and continue from @at to @end. */
static bool
expand(Hosts *h, const char *prefix, const char *at, const char *end)
{
    const char *open = memchr(at, '[', (gsize)(end - at));
    g_autofree char *plain = g_strndup(at, (gsize)((open != NULL ? open : end) - at));
    g_autofree char *name = g_strconcat(prefix, plain, NULL);

    if (strpbrk(plain, "]()=#") != NULL)
        return fail_list(h, "names are letters, digits, - . and _, and numbers in brackets");
    if (strlen(name) > LH_TOOL_NAME_BYTES_MAX)
        return fail_list(h, "a name is too long");
    if (open != NULL)
        return expand_bracket(h, name, open, end);
    if (*name == '\0')
        return fail_list(h, "a name is missing");
    if (h->names->len == NODES_MAX)
        return fail_list(h, "more than " G_STRINGIFY(NODES_MAX) " names");
    g_ptr_array_add(h->names, g_steal_pointer(&name));
    return true;
}

/* Adds the names of "tux[0-3,12],login1" to @names. */
static bool
read_hosts(LhToolReader *r, LhToolWord list, GPtrArray *names)
{
    Hosts hosts = { r, list, names };
    const char *const end = list.at + list.length;
    const char *from = list.at;
    bool inside = false;

    for (const char *at = list.at; at < end; at++) {
        inside = *at == '[' || (inside && *at != ']');
        if (*at != ',' || inside)
            continue;
        if (!expand(&hosts, "", from, at))
            return false;
        from = at + 1;
    }
    return expand(&hosts, "", from, end);
}

/* --- lines --------------------------------------------------------------------------------------
 */

/* Value of KEY=VALUE, ignoring the case of KEY; empty for another key. */
static LhToolWord
value_of(LhToolWord word, const char *key)
{
    const gsize length = strlen(key);
    const LhToolWord none = { word.at, 0 };

    if (word.length <= length || g_ascii_strncasecmp(word.at, key, length) != 0)
        return none;
    return (LhToolWord){ word.at + length, word.length - length };
}

static bool
has_key(LhToolWord word, const char *key)
{
    return word.length >= strlen(key) && g_ascii_strncasecmp(word.at, key, strlen(key)) == 0;
}

static bool
is_switch_line(const LhToolReader *r)
{
    const LhToolWord first = lh_tool_word(r, 0);

    return has_key(first, "SwitchName=") || has_key(first, "BlockName=") ||
           has_key(first, "BlockSizes=") || has_key(first, "RingName=");
}

static bool
add_leaf(LhToolReader *r, Tree *tree, LhToolWord list)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);

    if (!read_hosts(r, list, names))
        return false;
    for (guint i = 0; i < names->len; i++) {
        char *name = g_strdup(g_ptr_array_index(names, i));

        if (!g_hash_table_add(tree->nodes, name))
            return lh_text_fail(
                &r->text, list.at,
                "a node of this switch is listed twice, or on another switch as well");
    }
    if (g_hash_table_size(tree->nodes) > NODES_MAX)
        return lh_text_fail(&r->text, list.at, "more than %d nodes", NODES_MAX);
    tree->leaves++;
    tree->nodes_per_leaf = MAX(tree->nodes_per_leaf, names->len);
    return true;
}

static bool
add_children(LhToolReader *r, Tree *tree, LhToolWord list)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);

    if (!read_hosts(r, list, names))
        return false;
    for (guint i = 0; i < names->len; i++) {
        const Child child = { g_strdup(g_ptr_array_index(names, i)), r->text.line };

        g_array_append_val(tree->children, child);
    }
    return tree->children->len <= NODES_MAX ||
           lh_text_fail(&r->text, list.at, "more than %d switches", NODES_MAX);
}

static bool
read_switch(LhToolReader *r, Tree *tree)
{
    const LhToolWord name = value_of(lh_tool_word(r, 0), "SwitchName=");
    LhToolWord nodes = { NULL, 0 }, below = { NULL, 0 };

    if (name.length == 0 || name.length > LH_TOOL_NAME_BYTES_MAX)
        return lh_text_fail(&r->text, name.at,
                            "a line of topology.conf begins with SwitchName=NAME; blocks and rings "
                            "are not supported, since a topology file has a tree of switches");
    if (!g_hash_table_add(tree->switches, g_strndup(name.at, name.length)))
        return lh_text_fail(&r->text, name.at, "duplicate switch");
    for (guint i = 1; i < r->words->len && *lh_tool_word(r, i).at != '#'; i++) {
        const LhToolWord word = lh_tool_word(r, i);

        if (memchr(word.at, '=', word.length) == NULL)
            return lh_text_fail(&r->text, word.at, "a key and its value are written KEY=VALUE");
        nodes = has_key(word, "Nodes=") ? value_of(word, "Nodes=") : nodes;
        below = has_key(word, "Switches=") ? value_of(word, "Switches=") : below;
    }
    tree->line = tree->line == 0 ? r->text.line : tree->line;
    /* scontrol also lists all nodes below an upper switch. */
    if (below.at != NULL)
        return add_children(r, tree, below);
    if (nodes.at != NULL)
        return add_leaf(r, tree, nodes);
    return lh_text_fail(&r->text, name.at, "a switch has Nodes= or Switches=");
}

static bool
fail_child(const LhToolReader *r, const Child *child)
{
    g_set_error(r->text.error, LH_ERROR, LH_ERROR_INPUT,
                "%s:%u: error: Switches= names a switch that has no line of its own", r->text.file,
                child->line);
    return false;
}

static bool
conclude_tree(LhToolReader *r, const Tree *tree)
{
    const LhToolValue nodes = { g_hash_table_size(tree->nodes), LH_PROVENANCE_DATASHEET, 0, 0 };
    const LhToolValue per_leaf = { tree->nodes_per_leaf, LH_PROVENANCE_DATASHEET, 0, 0 };

    for (guint i = 0; i < tree->children->len; i++) {
        const Child *child = &g_array_index(tree->children, Child, i);

        if (!g_hash_table_contains(tree->switches, child->name))
            return fail_child(r, child);
    }
    if (tree->leaves == 0)
        return lh_text_fail(&r->text, r->text.line_start, "no switch has Nodes=");
    return lh_tool_add(r, LH_TOOL_NODES, tree->line, nodes) &&
           lh_tool_add(r, LH_TOOL_NODES_PER_LEAF, tree->line, per_leaf);
}

static bool
read_tree_lines(LhToolReader *r, Tree *tree)
{
    for (;;) {
        bool more;

        if (!lh_tool_next(r, &more))
            return false;
        if (!more)
            return conclude_tree(r, tree);
        if (r->words->len > 0 && *lh_tool_word(r, 0).at != '#' && !read_switch(r, tree))
            return false;
    }
}

static void
clear_child(gpointer child)
{
    g_free(((Child *)child)->name);
}

static bool
read_slurm(LhToolReader *r)
{
    g_autoptr(GHashTable) switches = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GHashTable) nodes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GArray) children = g_array_new(FALSE, FALSE, sizeof(Child));
    Tree tree = { .switches = switches, .nodes = nodes, .children = children };

    g_array_set_clear_func(children, clear_child);
    return read_tree_lines(r, &tree);
}

const LhToolFormat lh_tool_slurm = { "Slurm topology.conf", is_switch_line, read_slurm };
