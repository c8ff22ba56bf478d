package main

import "libspx/core/tool"

// Bodies of MPI_T for control variables, enumerations and categories (MPI-5.0, sections 16.3.5,
// 16.3.6 and 16.3.9).

//spx:body MPI_T_cvar_get_num
func toolCvarNum(c *call) error {
	return inTool(func(t *tool.State) tool.Code { return t.CvarNum(c.int32At(0)) })
}

//spx:body MPI_T_cvar_get_info
func toolCvarInfo(c *call) error {
	return inTool(func(t *tool.State) tool.Code {
		return t.CvarInfo(c.int(0), c.text(1), c.int32At(3), c.toolType(4), c.toolResult(5),
			c.text(6), c.int32At(8), c.int32At(9))
	})
}

//spx:body MPI_T_cvar_get_index
func toolCvarIndex(c *call) error {
	return inTool(func(t *tool.State) tool.Code { return t.CvarIndex(c.name(0), c.int32At(1)) })
}

//spx:body MPI_T_cvar_handle_alloc
func toolCvarAlloc(c *call) error {
	return inTool(func(t *tool.State) tool.Code {
		return t.AllocCvar(c.int(0), c.toolResult(2),
			c.int32At(3))
	})
}

//spx:body MPI_T_cvar_handle_free
func toolCvarFree(c *call) error {
	return inTool(func(t *tool.State) tool.Code { return t.FreeCvar(c.toolResult(0)) })
}

//spx:body MPI_T_cvar_read
func toolCvarRead(c *call) error {
	return inTool(func(t *tool.State) tool.Code {
		return t.ReadCvar(c.toolHandle(0),
			c.memory(1, tool.TextMax))
	})
}

//spx:body MPI_T_cvar_write
func toolCvarWrite(c *call) error {
	return inTool(func(t *tool.State) tool.Code {
		return t.WriteCvar(c.toolHandle(0),
			c.memory(1, tool.TextMax))
	})
}

//spx:body MPI_T_enum_get_info
func toolEnumInfo(c *call) error {
	return inTool(func(t *tool.State) tool.Code {
		return t.EnumInfo(c.toolHandle(0), c.int32At(1),
			c.text(2))
	})
}

//spx:body MPI_T_enum_get_item
func toolEnumItem(c *call) error {
	return inTool(func(t *tool.State) tool.Code {
		return t.EnumItem(c.toolHandle(0), c.int(1),
			c.int32At(2), c.text(3))
	})
}

//spx:body MPI_T_category_get_num
func toolCategoryNum(c *call) error {
	return inTool(func(t *tool.State) tool.Code { return t.CategoryNum(c.int32At(0)) })
}

//spx:body MPI_T_category_get_info
func toolCategoryInfo(c *call) error {
	return inTool(func(t *tool.State) tool.Code {
		return t.CategoryInfo(c.int(0), c.text(1), c.text(3), c.int32At(5), c.int32At(6),
			c.int32At(7))
	})
}

//spx:body MPI_T_category_get_num_events
func toolCategoryEvents(c *call) error {
	return inTool(func(t *tool.State) tool.Code { return t.CategoryEvents(c.int(0), c.int32At(1)) })
}

//spx:body MPI_T_category_get_index
func toolCategoryIndex(c *call) error {
	return inTool(func(t *tool.State) tool.Code { return t.CategoryIndex(c.name(0), c.int32At(1)) })
}

// members is the body of the four functions that list what a category has.
func (c *call) members(of tool.Member) error {
	return inTool(func(t *tool.State) tool.Code {
		size := c.int(1)
		return t.CategoryMembers(c.int(0), of, size, c.indexes(2, size))
	})
}

//spx:body MPI_T_category_get_cvars
func toolCategoryCvars(c *call) error { return c.members(tool.Cvars) }

//spx:body MPI_T_category_get_pvars
func toolCategoryPvars(c *call) error { return c.members(tool.Pvars) }

//spx:body MPI_T_category_get_events
func toolCategoryEventList(c *call) error { return c.members(tool.Events) }

//spx:body MPI_T_category_get_categories
func toolCategoryCategories(c *call) error { return c.members(tool.Categories) }

//spx:body MPI_T_category_changed
func toolCategoryChanged(c *call) error {
	return inTool(func(t *tool.State) tool.Code { return t.CategoryChanged(c.int32At(0)) })
}
